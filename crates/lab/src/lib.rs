//! The experiment runner: host facts, subject lifecycle, pinning, sampling, trials to Records.
