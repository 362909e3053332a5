//! Reference servers: pingpong, calibrate.
