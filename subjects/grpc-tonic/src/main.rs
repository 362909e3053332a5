//! gRPC server: tonic on tokio's thread pool, with the methods of `../grpc-go/test.proto` and the health service.

use std::error::Error;
use std::net::Ipv4Addr;
use std::process::exit;
use std::time::Duration;

use tokio::net::TcpSocket;
use tokio::sync::mpsc;
use tokio_stream::wrappers::ReceiverStream;
use tokio_stream::{Stream, StreamExt};
use tonic::codegen::BoxStream;
use tonic::transport::Server;
use tonic::transport::server::TcpIncoming;
use tonic::{Code, Request, Response, Status, Streaming, async_trait};

use crate::testing::test_service_server::{TestService, TestServiceServer};
use crate::testing::{
    EchoStatus, Empty, Payload, SimpleRequest, SimpleResponse, StreamingInputCallRequest, StreamingInputCallResponse,
    StreamingOutputCallRequest, StreamingOutputCallResponse,
};

#[allow(dead_code, reason = "the server of `UnimplementedService` is never started")]
mod testing {
    tonic::include_proto!("grpc.testing");
}

type Output = Result<StreamingOutputCallResponse, Status>;

fn zeros(size: i32) -> Result<Payload, Status> {
    let size = usize::try_from(size).map_err(|_| Status::invalid_argument("the size is negative"))?;
    Ok(Payload { r#type: 0, body: vec![0; size] })
}

fn echo(status: Option<EchoStatus>) -> Result<(), Status> {
    match status {
        Some(EchoStatus { code, message }) if code != 0 => Err(Status::new(Code::from(code), message)),
        _ => Ok(()),
    }
}

/// Sends the responses of one request. A client that has left is not an error.
async fn respond(request: StreamingOutputCallRequest, responses: &mpsc::Sender<Output>) -> Result<(), Status> {
    echo(request.response_status)?;
    for response in request.response_parameters {
        tokio::time::sleep(Duration::from_micros(response.interval_us.try_into().unwrap_or(0))).await;
        let payload = Some(zeros(response.size)?);
        if responses.send(Ok(StreamingOutputCallResponse { payload })).await.is_err() {
            break;
        }
    }
    Ok(())
}

fn respond_to_each<S>(mut requests: S) -> Response<BoxStream<StreamingOutputCallResponse>>
where
    S: Stream<Item = Result<StreamingOutputCallRequest, Status>> + Send + Unpin + 'static,
{
    let (sender, responses) = mpsc::channel(4);
    tokio::spawn(async move {
        while let Some(request) = requests.next().await {
            let responded = async { respond(request?, &sender).await };
            if let Err(status) = responded.await {
                return drop(sender.send(Err(status)).await);
            }
        }
    });
    Response::new(Box::pin(ReceiverStream::new(responses)))
}

struct Service;

#[async_trait]
impl TestService for Service {
    async fn empty_call(&self, _: Request<Empty>) -> Result<Response<Empty>, Status> {
        Ok(Response::new(Empty {}))
    }

    async fn unary_call(&self, request: Request<SimpleRequest>) -> Result<Response<SimpleResponse>, Status> {
        let request = request.into_inner();
        echo(request.response_status)?;
        Ok(Response::new(SimpleResponse { payload: Some(zeros(request.response_size)?) }))
    }

    async fn streaming_input_call(
        &self,
        request: Request<Streaming<StreamingInputCallRequest>>,
    ) -> Result<Response<StreamingInputCallResponse>, Status> {
        let mut requests = request.into_inner();
        let mut size = 0;
        while let Some(request) = requests.message().await? {
            size += request.payload.map_or(0, |payload| payload.body.len());
        }
        let aggregated_payload_size = size.try_into().map_err(|_| Status::out_of_range("the sum exceeds an int32"))?;
        Ok(Response::new(StreamingInputCallResponse { aggregated_payload_size }))
    }

    async fn streaming_output_call(
        &self,
        request: Request<StreamingOutputCallRequest>,
    ) -> Result<Response<BoxStream<StreamingOutputCallResponse>>, Status> {
        Ok(respond_to_each(tokio_stream::once(Ok(request.into_inner()))))
    }

    async fn full_duplex_call(
        &self,
        request: Request<Streaming<StreamingOutputCallRequest>>,
    ) -> Result<Response<BoxStream<StreamingOutputCallResponse>>, Status> {
        Ok(respond_to_each(request.into_inner()))
    }
}

async fn serve(port: u16) -> Result<(), Box<dyn Error>> {
    let socket = TcpSocket::new_v4()?;
    socket.set_reuseaddr(true)?;
    socket.bind((Ipv4Addr::LOCALHOST, port).into())?;
    let listener = socket.listen(1 << 16)?; // the kernel caps it at net.core.somaxconn
    println!("ready {}", listener.local_addr()?.port());
    let (_reporter, health) = tonic_health::server::health_reporter();
    let services = Server::builder().add_service(health).add_service(TestServiceServer::new(Service));
    Ok(services.serve_with_incoming(TcpIncoming::from(listener).with_nodelay(Some(true))).await?)
}

fn main() -> Result<(), Box<dyn Error>> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let port = match &arguments[..] {
        [flag, port] if flag == "-p" => port.parse().ok(),
        _ => None,
    };
    let Some(port) = port else {
        eprintln!("usage: grpc-tonic -p PORT");
        exit(2);
    };
    tokio::runtime::Builder::new_multi_thread().enable_all().build()?.block_on(serve(port))
}
