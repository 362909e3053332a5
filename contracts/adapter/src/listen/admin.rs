//! The admin port: `/resolve?endpoint=...`, `/metrics`, `/state`, `/health`.

use std::convert::Infallible;
use std::io;
use std::sync::Arc;

use bytes::Bytes;
use codecs::rest::Parameters;
use http_body_util::Full;
use hyper::body::Incoming;
use hyper::header::{CONTENT_TYPE, HeaderValue};
use hyper::{Method, Request, Response, StatusCode};
use hyper_util::rt::{TokioIo, TokioTimer};
use tokio::net::TcpStream;

use config::printable;

use crate::app::App;

pub(crate) async fn serve(app: &Arc<App>, stream: TcpStream) -> io::Result<()> {
    let answering = app.clone();
    let service = hyper::service::service_fn(move |request| {
        let app = answering.clone();
        async move { Ok::<_, Infallible>(answer(&app, &request).await) }
    });
    let mut builder = hyper::server::conn::http1::Builder::new();
    builder.timer(TokioTimer::new()).header_read_timeout(app.limits.idle).max_buf_size(16 << 10);
    let connection = builder.serve_connection(TokioIo::new(stream), service);
    tokio::pin!(connection);
    let done = tokio::select! {
        done = &mut connection => done,
        () = app.ending() => {
            connection.as_mut().graceful_shutdown();
            connection.await
        }
    };
    done.map_err(io::Error::other)
}

async fn answer(app: &Arc<App>, request: &Request<Incoming>) -> Response<Full<Bytes>> {
    let told = |code: StatusCode, kind: &'static str, text: String| {
        let mut response = Response::new(Full::new(Bytes::from(text)));
        *response.status_mut() = code;
        response.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static(kind));
        response
    };
    const TEXT: &str = "text/plain; charset=utf-8";
    const METRICS: &str = "application/openmetrics-text; version=1.0.0; charset=utf-8";
    const JSON: &str = "application/json";
    if request.method() != Method::GET {
        return told(StatusCode::METHOD_NOT_ALLOWED, TEXT, "only GET is supported here\n".to_owned());
    }
    match request.uri().path() {
        "/resolve" => {
            let parameters = Parameters::parse(request.uri().query().unwrap_or_default(), 16);
            let endpoint = parameters.ok().and_then(|parameters| parameters.get("endpoint").map(str::to_owned));
            let Some(endpoint) = endpoint else {
                return told(StatusCode::BAD_REQUEST, TEXT, "usage: /resolve?endpoint=host:port\n".to_owned());
            };
            match crate::listen::resolve(app, &endpoint).await {
                Ok(resolved) => told(StatusCode::OK, JSON, serde_json::json!(resolved).to_string() + "\n"),
                Err(wrong) => told(StatusCode::BAD_REQUEST, TEXT, printable::line(&wrong).into_owned() + "\n"),
            }
        }
        "/metrics" => told(StatusCode::OK, METRICS, app.watch.metrics_text()),
        "/state" => {
            let now_s = crate::clock::unix_s();
            let shown = app.watch.with(|monitor| monitor.entries(now_s));
            let lines = shown
                .iter()
                .filter_map(|entry| serde_json::to_string(entry).ok())
                .map(|line| printable::text(&line).into_owned() + "\n");
            told(StatusCode::OK, "application/jsonl", lines.collect())
        }
        "/health" => told(StatusCode::OK, JSON, serde_json::json!({ "name": app.watch.label }).to_string() + "\n"),
        _ => told(StatusCode::NOT_FOUND, TEXT, "/resolve?endpoint=..., /metrics, /state, /health\n".to_owned()),
    }
}
