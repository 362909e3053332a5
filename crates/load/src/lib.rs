//! The load engine: arrivals, connections, requests in flight, to a Measurement.
