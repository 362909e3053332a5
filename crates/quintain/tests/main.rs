//! End-to-end tests on real processes: output and exit codes. They share one binary, which links faster than several.

mod adapter_and_contract;
mod calculator_example;
mod chess_case_study;
mod cluster;
mod common;
mod compare;
mod cpu_profile;
mod generator_process;
mod grpc_interop;
mod guides;
mod http_studies;
mod init;
mod live_display;
mod load;
mod load_http;
mod metrics_endpoint;
mod miss_ratio_curves;
mod run;
mod runs_and_history;
mod serve_cache;
mod serve_http;
mod study_sources;
mod user_messages;
mod verify;
mod verify_known_defects;
mod workload;
