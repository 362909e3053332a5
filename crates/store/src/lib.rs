//! SQLite: runs and trials, one transaction per trial.
