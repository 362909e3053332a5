//! Server statistics: `stats`, `INFO`, and the header fields of `HEAD /`.

use std::io::Write;
use std::sync::atomic::Ordering;

use super::executor::Executor;

/// The emulated version of memcached, which tells clients what they can send, followed by quintain's own version.
pub(super) const MEMCACHED_VERSION: &str = concat!("1.6.18 (quintain ", env!("CARGO_PKG_VERSION"), ")");
pub(super) const REDIS_VERSION: &str = "7.0.15";

impl Executor {
    pub(super) fn memcached_stats(&mut self) {
        let shared = &self.shared;
        let (stats, config) = (shared.cache.stats(), &shared.config);
        for (name, value) in [
            ("pid", u64::from(std::process::id())),
            ("time", u64::from(self.now_s)),
            ("curr_connections", shared.open.load(Ordering::Relaxed) as u64),
            ("threads", config.threads as u64),
            ("limit_maxbytes", config.capacity_bytes),
            ("cmd_get", stats.hits + stats.misses),
            ("cmd_set", stats.stores),
            ("get_hits", stats.hits),
            ("get_misses", stats.misses),
            ("delete_hits", stats.deletes),
            ("bytes", stats.item_bytes()),
            ("curr_items", stats.items),
            ("total_items", stats.stored),
            ("evictions", stats.evictions),
            ("expired", stats.expired),
            ("refused", stats.refused),
            ("key_bytes", stats.key_bytes),
            ("value_bytes", stats.value_bytes),
            ("memory_bytes", stats.memory_bytes()),
        ] {
            let _ = write!(self.out, "STAT {name} {value}\r\n");
        }
        let _ = write!(self.out, "STAT version {MEMCACHED_VERSION}\r\nEND\r\n");
    }

    /// The text of `INFO`, returned in full whichever section is requested.
    pub(super) fn redis_info(&self) -> String {
        let shared = &self.shared;
        let stats = shared.cache.stats();
        format!(
            "# Server\r\nredis_version:{REDIS_VERSION}\r\nquintain_version:{}\r\nredis_mode:standalone\r\n\r\n\
             # Clients\r\nconnected_clients:{}\r\n\r\n\
             # Memory\r\nused_memory:{}\r\nallocated_memory:{}\r\nmaxmemory:{}\r\nmaxmemory_policy:{}\r\n\r\n\
             # Stats\r\nkeyspace_hits:{}\r\nkeyspace_misses:{}\r\nexpired_keys:{}\r\nevicted_keys:{}\r\n",
            env!("CARGO_PKG_VERSION"),
            shared.open.load(Ordering::Relaxed),
            stats.item_bytes(),
            stats.memory_bytes(),
            shared.config.capacity_bytes,
            redis_policy(shared.config.evictor),
            stats.hits,
            stats.misses,
            stats.expired,
            stats.evictions,
        )
    }
}

pub(super) fn redis_policy(evictor: cache::Evictor) -> &'static str {
    match evictor {
        cache::Evictor::None => "noeviction",
        cache::Evictor::Lru => "allkeys-lru",
        other => other.name(),
    }
}
