//! Histograms, quantiles, intervals, steady state, stop rules, fits, random numbers.
