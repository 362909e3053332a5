//! Tests that the deployment in docs/guides/adapter.md, with different addresses and paths, blames parties by name.

use rcgen::{BasicConstraints, CertificateParams, IsCa, Issuer, KeyPair};

use crate::world::{Adapter, add, adder, contract, file, free_port};

fn documented(name: &str) -> String {
    let text = std::fs::read_to_string(file("../docs/guides/adapter.md")).unwrap();
    let section = text.split("\n## A full deployment\n").nth(1).unwrap().split("\n## ").next().unwrap();
    let begin = format!("```toml\n# {name}");
    let block = section.split(&begin).nth(1).unwrap_or_else(|| panic!("{name}")).split("```").next().unwrap();
    format!("#{block}")
}

#[test]
fn documented_deployment_blames_by_name() {
    let folder = tempfile::tempdir().unwrap();
    let at = |name: &str| folder.path().join(name);
    let key = KeyPair::generate().unwrap();
    let mut params = CertificateParams::new(Vec::new()).unwrap();
    params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    let ca = params.self_signed(&key).unwrap();
    std::fs::write(at("ca.pem"), ca.pem()).unwrap();
    let issuer = Issuer::new(params, key);
    for label in ["adder", "client"] {
        let key = KeyPair::generate().unwrap();
        let params = CertificateParams::new(vec![label.to_owned(), "127.0.0.1".to_owned()]).unwrap();
        std::fs::write(at(&format!("{label}.pem")), params.signed_by(&key, &issuer).unwrap().pem()).unwrap();
        std::fs::write(at(&format!("{label}.key")), key.serialize_pem()).unwrap();
    }
    std::fs::copy(contract("plain"), at("calculator.contract")).unwrap();
    std::fs::copy(file("codecs/schemas/calculator.thrift"), at("calculator.thrift")).unwrap();
    let (endpoint, adapters, listen) = (free_port(), free_port(), free_port());
    let service = adder(-1);
    let start = |name: &str| {
        let mut text = documented(name);
        for (there, here) in [
            ("127.0.0.1:8001", format!("127.0.0.1:{service}")),
            ("adder:8001", format!("127.0.0.1:{endpoint}")),
            ("0.0.0.0:38001", format!("127.0.0.1:{adapters}")),
            ("adder:38001", format!("127.0.0.1:{adapters}")),
            ("127.0.0.1:9001", format!("127.0.0.1:{listen}")),
        ] {
            text = text.replace(there, &here);
        }
        Adapter::of(&text, folder.path(), None)
    };
    let (server, client) = (start("adder.toml"), start("client.toml"));
    let through = format!("127.0.0.1:{listen}");
    assert_eq!(add(&through, 2, 2).unwrap(), 3);
    let told = client.told();
    assert!(told.contains("Failed postcondition result == a + b") && told.contains("vouched for by adder\n"), "{told}");
    assert_eq!(add(&through, -2, 5).unwrap(), 2);
    let told = server.told();
    assert!(told.contains("Blaming: client (precondition failure)"), "{told}");
    for told in [client.told(), server.told()] {
        assert!(!told.contains("unknown"), "{told}");
    }
}
