//! The admin port: `/resolve?endpoint=...`, `/metrics`, `/state`, `/health`.

use std::sync::Arc;

use codecs::rest_path_and_query::parameters;
use config::printable;
use hyper::body::Incoming;
use hyper::{Method, Request, Response, StatusCode};

use crate::body::{Body, respond};
use crate::shared_state::App;

pub(crate) async fn answer(app: &Arc<App>, request: &Request<Incoming>) -> Response<Body> {
    const TEXT: &str = "text/plain; charset=utf-8";
    const METRICS: &str = "application/openmetrics-text; version=1.0.0; charset=utf-8";
    const JSON: &str = "application/json";
    if request.method() != Method::GET {
        return respond(StatusCode::METHOD_NOT_ALLOWED, TEXT, "only GET is supported here\n".to_owned());
    }
    match request.uri().path() {
        "/resolve" => {
            let mut parameters = parameters(request.uri().query().unwrap_or_default(), 16).into_iter().flatten();
            let Some((_, endpoint)) = parameters.find(|(name, _)| name == "endpoint") else {
                return respond(StatusCode::BAD_REQUEST, TEXT, "usage: /resolve?endpoint=host:port\n".to_owned());
            };
            match super::resolve(app, &endpoint).await {
                Ok(resolved) => respond(StatusCode::OK, JSON, resolved.to_string() + "\n"),
                Err(wrong) => respond(StatusCode::BAD_REQUEST, TEXT, printable::line(&wrong).into_owned() + "\n"),
            }
        }
        "/metrics" => respond(StatusCode::OK, METRICS, app.metrics_text()),
        "/state" => {
            let shown = app.monitor().entries(crate::clock::unix_s());
            let lines = shown
                .iter()
                .filter_map(|entry| serde_json::to_string(entry).ok())
                .map(|line| printable::text(&line).into_owned() + "\n");
            respond(StatusCode::OK, "application/jsonl", lines.collect())
        }
        "/health" => respond(StatusCode::OK, JSON, serde_json::json!({ "name": app.config.name }).to_string() + "\n"),
        _ => respond(StatusCode::NOT_FOUND, TEXT, "/resolve?endpoint=..., /metrics, /state, /health\n".to_owned()),
    }
}
