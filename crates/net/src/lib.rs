//! One Driver, three backends: io_uring, epoll, sim; buffers, timers, clock.
