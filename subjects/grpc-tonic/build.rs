fn main() -> Result<(), Box<dyn std::error::Error>> {
    let proto = "../grpc-go/test.proto";
    println!("cargo::rerun-if-changed={proto}");
    let files = protox::compile([proto], ["../grpc-go"])?; // protoc in Rust
    let service = tonic_prost_build::configure().build_client(false).generate_default_stubs(true);
    Ok(service.compile_fds(files)?)
}
