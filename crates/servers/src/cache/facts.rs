//! What the server says of itself: `stats`, `INFO`, the fields of `HEAD /`.

use std::io::Write;
use std::sync::PoisonError;
use std::sync::atomic::Ordering;

use cache::Stats;

use super::CacheShared;
use super::executor::Executor;

impl CacheShared {
    /// What the cache did since [`CacheShared::forget_counts`], and holds.
    pub(super) fn stats(&self) -> Stats {
        let now = self.cache.stats();
        let before = *self.before.lock().unwrap_or_else(PoisonError::into_inner);
        Stats {
            hits: now.hits - before.hits,
            misses: now.misses - before.misses,
            stores: now.stores - before.stores,
            deletes: now.deletes - before.deletes,
            evictions: now.evictions - before.evictions,
            expired: now.expired - before.expired,
            refused: now.refused - before.refused,
            ..now
        }
    }

    /// Counts from 0 again.
    pub(super) fn forget_counts(&self) {
        let now = self.cache.stats();
        *self.before.lock().unwrap_or_else(PoisonError::into_inner) = now;
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
                self.stat("shards", self.shared.cache.shards());
            }
            // There are no slabs here, and nothing is said of those there are not.
            b"items" | b"slabs" | b"sizes" | b"conns" => {}
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
        self.stat("version", super::memcached::VERSION);
        self.stat("pointer_size", usize::BITS);
        self.stat("curr_connections", shared.open());
        self.stat("total_connections", shared.sum(|counters| &counters.accepted));
        self.stat("rejected_connections", shared.sum(|counters| &counters.refused));
        self.stat("cmd_get", stats.hits + stats.misses);
        self.stat("cmd_set", stats.stores);
        self.stat("get_hits", stats.hits);
        self.stat("get_misses", stats.misses);
        self.stat("delete_hits", stats.deletes);
        self.stat("bytes_read", shared.sum(|counters| &counters.read_bytes));
        self.stat("bytes_written", shared.sum(|counters| &counters.written_bytes));
        self.stat("limit_maxbytes", shared.config.capacity_bytes);
        self.stat("threads", shared.threads.len());
        self.stat("bytes", item_bytes(&stats));
        self.stat("curr_items", stats.items);
        self.stat("evictions", stats.evictions);
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
        let sections = [
            (
                "Server",
                // Clients ask which commands they may send: those of this version that are there at all.
                format!(
                    "redis_version:7.0.15\r\nserver_name:quintain\r\nquintain_version:{version}\r\nredis_mode:standalone\r\n\
                     arch_bits:{}\r\nprocess_id:{}\r\nuptime_in_seconds:{uptime}\r\nio_threads:{threads}\r\n",
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
            ("Keyspace", if stats.items > 0 { format!("db0:keys={}\r\n", stats.items) } else { String::new() }),
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
