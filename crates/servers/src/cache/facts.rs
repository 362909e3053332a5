//! What the server says of itself: `stats`, `INFO`, the fields of `HEAD /`.

use std::io::Write;
use std::sync::PoisonError;
use std::sync::atomic::Ordering;

use cache::Stats;

use super::executor::Executor;
use super::{Before, CacheShared, Done};

/// The version of memcached whose protocol this is, by which clients decide what they may send; and our own.
pub(super) const MEMCACHED_VERSION: &str = concat!("1.6.18 (quintain ", env!("CARGO_PKG_VERSION"), ")");
/// The version of Redis whose commands these are, likewise.
pub(super) const REDIS_VERSION: &str = "7.0.15";

impl CacheShared {
    /// What the cache did since [`CacheShared::forget_counts`], and holds.
    pub(super) fn stats(&self) -> Stats {
        let now = self.cache.stats();
        let before = self.before.lock().unwrap_or_else(PoisonError::into_inner).stats;
        Stats {
            hits: now.hits - before.hits,
            misses: now.misses - before.misses,
            stores: now.stores - before.stores,
            stored: now.stored - before.stored,
            deletes: now.deletes - before.deletes,
            evictions: now.evictions - before.evictions,
            expired: now.expired - before.expired,
            refused: now.refused - before.refused,
            ..now
        }
    }

    /// Counts from 0 again.
    pub(super) fn forget_counts(&self) {
        let now = Before { stats: self.cache.stats(), done: self.done() };
        *self.before.lock().unwrap_or_else(PoisonError::into_inner) = now;
    }

    /// What was counted of [`Done`], by its number.
    fn done(&self) -> [u64; Done::COUNT] {
        std::array::from_fn(|what| self.sum(|counters| &counters.done[what]))
    }
}

/// Bytes of what items take: keys, values and what the cache adds to each.
pub(super) fn item_bytes(stats: &Stats) -> u64 {
    stats.key_bytes + stats.value_bytes + stats.header_bytes + stats.index_bytes + stats.policy_bytes
}

impl Executor {
    pub(super) fn uptime_s(&self) -> u32 {
        self.now_s.saturating_sub(self.shared.started_s.load(Ordering::Relaxed))
    }

    /// `stats`, of what `argument` says.
    pub(super) fn text_stats(&mut self, argument: &[u8]) {
        match argument {
            b"" => self.text_stats_general(),
            b"reset" => {
                self.shared.forget_counts();
                self.out.extend_from_slice(b"RESET\r\n");
                return;
            }
            b"settings" => {
                let config = self.shared.config.clone();
                self.stat("maxbytes", config.capacity_bytes);
                self.stat("evictions", config.evictor);
                self.stat("num_threads", self.shared.threads.len());
                self.stat("item_size_max", self.shared.cache.value_bytes_max());
                self.stat("key_size_max", self.shared.cache.key_bytes_max());
                self.stat("cas_enabled", if config.versions { "yes" } else { "no" });
                self.stat("access_times", if config.access_times { "yes" } else { "no" });
                self.stat("shards", self.shared.cache.shards());
                // What memcached has for its lists of items, and this cache does not.
                self.stat("lru_crawler", "no");
                self.stat("lru_segmented", "no");
                self.stat("slab_reassign", "no");
                self.stat("slab_automove", 0);
                self.stat("flush_enabled", "yes");
            }
            // All items are of one class: there are no slabs, and memory goes where it is needed.
            b"items" | b"slabs" => {
                let stats = self.shared.stats();
                if argument == b"slabs" {
                    self.stat("active_slabs", 0);
                    self.stat("total_malloced", stats.memory_bytes());
                } else if stats.items > 0 {
                    self.stat("items:1:number", stats.items);
                    self.stat("items:1:mem_requested", item_bytes(&stats));
                    self.stat("items:1:evicted", stats.evictions);
                    self.stat("items:1:outofmemory", stats.refused);
                    self.stat("items:1:reclaimed", stats.expired);
                }
            }
            b"sizes" => self.stat("sizes_status", "disabled"),
            b"conns" => {}
            _ => return self.out.extend_from_slice(b"ERROR\r\n"),
        }
        self.out.extend_from_slice(b"END\r\n");
    }

    fn text_stats_general(&mut self) {
        let shared = std::sync::Arc::clone(&self.shared);
        let stats = shared.stats();
        self.stat("pid", std::process::id());
        self.stat("uptime", self.uptime_s());
        self.stat("time", self.now_s);
        self.stat("version", MEMCACHED_VERSION);
        self.stat("pointer_size", usize::BITS);
        self.stat("curr_connections", shared.open());
        self.stat("total_connections", shared.sum(|counters| &counters.accepted));
        self.stat("rejected_connections", shared.sum(|counters| &counters.refused));
        self.stat("accepting_conns", 1);
        self.stat("listen_disabled_num", 0);
        let before = shared.before.lock().unwrap_or_else(PoisonError::into_inner).done;
        let counted = shared.done();
        let done = |what: Done| counted[what as usize] - before[what as usize];
        self.stat("cmd_get", stats.hits + stats.misses);
        self.stat("cmd_set", stats.stores);
        self.stat("cmd_flush", done(Done::Flush));
        self.stat("cmd_touch", done(Done::TouchHits) + done(Done::TouchMisses));
        self.stat("cmd_meta", done(Done::Meta));
        for (name, what) in [
            ("delete_misses", Done::DeleteMisses),
            ("incr_misses", Done::IncrMisses),
            ("incr_hits", Done::IncrHits),
            ("decr_misses", Done::DecrMisses),
            ("decr_hits", Done::DecrHits),
            ("cas_misses", Done::CasMisses),
            ("cas_hits", Done::CasHits),
            ("cas_badval", Done::CasBadval),
            ("touch_hits", Done::TouchHits),
            ("touch_misses", Done::TouchMisses),
        ] {
            self.stat(name, done(what));
        }
        self.stat("get_hits", stats.hits);
        self.stat("get_misses", stats.misses);
        self.stat("delete_hits", stats.deletes);
        self.stat("bytes_read", shared.sum(|counters| &counters.read_bytes));
        self.stat("bytes_written", shared.sum(|counters| &counters.written_bytes));
        self.stat("limit_maxbytes", shared.config.capacity_bytes);
        self.stat("threads", shared.threads.len());
        self.stat("bytes", item_bytes(&stats));
        self.stat("curr_items", stats.items);
        self.stat("total_items", stats.stored);
        self.stat("evictions", stats.evictions);
        self.stat("reclaimed", stats.expired);
        self.stat("expired", stats.expired);
        self.stat("refused", stats.refused);
        self.stat("key_bytes", stats.key_bytes);
        self.stat("value_bytes", stats.value_bytes);
        self.stat("memory_bytes", stats.memory_bytes());
    }

    fn stat(&mut self, name: &str, value: impl std::fmt::Display) {
        let _ = write!(self.out, "STAT {name} {value}\r\n");
    }

    /// The text of `INFO`: all sections, or the one asked for.
    pub(super) fn info(&self, section: &[u8]) -> String {
        let shared = &self.shared;
        let stats = shared.stats();
        let config = &shared.config;
        let used = item_bytes(&stats);
        let (version, uptime, threads) = (env!("CARGO_PKG_VERSION"), self.uptime_s(), shared.threads.len());
        let (hits, misses) = (stats.hits, stats.misses);
        let keyspace = format!("db0:keys={},expires={},avg_ttl=0\r\n", stats.items, stats.expiring);
        let sections = [
            (
                "Server",
                // Clients ask which commands they may send: those of this version that are there at all.
                format!(
                    "redis_version:{}\r\nserver_name:quintain\r\nquintain_version:{version}\r\nredis_mode:standalone\r\n\
                     arch_bits:{}\r\nprocess_id:{}\r\nuptime_in_seconds:{uptime}\r\nio_threads:{threads}\r\n",
                    REDIS_VERSION,
                    usize::BITS,
                    std::process::id(),
                ),
            ),
            ("Clients", format!("connected_clients:{}\r\n", shared.open())),
            (
                "Memory",
                format!(
                    "used_memory:{used}\r\nused_memory_dataset:{}\r\nallocated_memory:{}\r\nmaxmemory:{}\r\n\
                     maxmemory_policy:{}\r\n",
                    stats.key_bytes + stats.value_bytes,
                    stats.memory_bytes(),
                    config.capacity_bytes,
                    policy(config.evictor),
                ),
            ),
            ("Persistence", "loading:0\r\naof_enabled:0\r\nrdb_bgsave_in_progress:0\r\n".to_owned()),
            (
                "Stats",
                format!(
                    "total_connections_received:{}\r\nrejected_connections:{}\r\ntotal_net_input_bytes:{}\r\n\
                     total_net_output_bytes:{}\r\nkeyspace_hits:{hits}\r\nkeyspace_misses:{misses}\r\n\
                     expired_keys:{}\r\nevicted_keys:{}\r\nrefused_keys:{}\r\n",
                    shared.sum(|counters| &counters.accepted),
                    shared.sum(|counters| &counters.refused),
                    shared.sum(|counters| &counters.read_bytes),
                    shared.sum(|counters| &counters.written_bytes),
                    stats.expired,
                    stats.evictions,
                    stats.refused,
                ),
            ),
            ("Replication", "role:master\r\nconnected_slaves:0\r\n".to_owned()),
            ("Keyspace", if stats.items > 0 { keyspace } else { String::new() }),
        ];
        let is_all = [b"".as_slice(), b"all", b"default", b"everything"];
        let is_all = is_all.iter().any(|word| word.eq_ignore_ascii_case(section));
        let mut text = String::new();
        for (name, lines) in sections {
            if is_all || name.as_bytes().eq_ignore_ascii_case(section) {
                let gap = if text.is_empty() { "" } else { "\r\n" };
                text += &format!("{gap}# {name}\r\n{lines}");
            }
        }
        text
    }
}

/// The evictor in Redis' words where it has one, else in ours.
pub(super) fn policy(evictor: cache::Evictor) -> &'static str {
    match evictor {
        cache::Evictor::None => "noeviction",
        cache::Evictor::Lru => "allkeys-lru",
        other => other.name(),
    }
}
