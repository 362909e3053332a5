//! Tests the objectives of Whip's calculator walkthrough, AT-0 to AT-7, on real sockets.

mod documented_deployment;
mod world;

use world::{Adapter, add, adder, adder_info, contract, discovery, full};

fn partial(contract_name: &str, adder_port: u16) -> (Adapter, String) {
    let discovery = format!("127.0.0.1:{}", discovery(adder_port));
    let consuming = format!("[[consuming]]\nservice = 'AdderDiscovery'\nendpoint = '{discovery}'");
    (Adapter::start("client", &contract(contract_name), &consuming), discovery)
}

#[test]
fn at_0_to_3_single_adapter_blames_unknown() {
    let port = adder(-1);
    let (client, discovery) = partial("plain", port);
    // AT-0: calls without an adapter succeed.
    assert_eq!(add(&format!("127.0.0.1:{port}"), 2, 2).unwrap(), 3);
    assert_eq!(client.told(), "");
    // AT-1: learned endpoints pass through unchanged.
    let learned = adder_info(&client.resolve(&discovery)).unwrap();
    assert_eq!(learned, format!("127.0.0.1:{port}"));
    let through = client.resolve(&learned);
    assert_ne!(through, learned);
    // AT-2 and AT-3: the call passes, and the report shows that `unknown` vouched.
    assert_eq!(add(&through, 2, 2).unwrap(), 3);
    let expect = format!(
        "[Whip] Contract Failure: Failed postcondition result == a + b\n\
         \t Occurring at: service Adder with default index at {learned} vouched for by unknown\n\
         \t Variables: \n\t   - a = 2\n\t   - b = 2\n\t   - result = 3\n\n"
    );
    assert_eq!(client.told(), expect);
}

#[test]
fn at_4_with_adapters_everywhere_the_adder_is_blamed() {
    let world = full("plain", -1);
    assert_eq!(world.add(2, 2), 3);
    let told = world.client.told();
    let says = format!("service Adder with default index at {} vouched for by adder\n", world.adder_at);
    assert!(told.contains(&says) && told.matches("Contract Failure").count() == 1, "{told}");
    assert_eq!((world.adder.told(), world.discovery.told()), (String::new(), String::new()));
    let entry = world.client.entry(&world.adder_at, "Adder");
    assert_eq!(
        (entry.labels, entry.peer),
        (vec!["adder".to_owned()], Some(world.adder.at(&format!("adapters {}", world.adder_at))))
    );
}

#[test]
fn at_5_index_shows_the_vouching_party() {
    let world = full("indexed", -1);
    assert_eq!(world.add(1, 1), 1);
    assert_eq!(world.add(2, 2), 3);
    let told = world.client.told();
    let says = |index: u32, who: &str| {
        format!("service Adder with index {index} at {} vouched for by {who}\n", world.adder_at)
    };
    assert!(told.contains(&says(1, "adder")) && told.contains(&says(2, "client")), "{told}");
    assert_eq!(told.matches("Contract Failure").count(), 2);
}

#[test]
fn at_6_server_side_reports_precondition_and_blames_client() {
    let world = full("plain", -1);
    assert_eq!(world.add(0, 0), -1);
    let told = world.adder.told();
    assert!(
        told.contains("Failed precondition for RPC add (a > 0 && b > 0)\n\t Blaming: client (precondition failure)\n"),
        "{told}"
    );
    assert!(told.contains("vouched for by adder\n") && told.matches("Contract Failure").count() == 1, "{told}");
    let told = world.client.told();
    assert!(told.contains("Failed postcondition result == a + b") && told.contains("result = -1"), "{told}");
}

#[test]
fn at_7_kept_clauses_are_not_reported() {
    let world = full("plain", 0);
    assert_eq!(world.add(2, 2), 4);
    for adapter in [&world.client, &world.adder, &world.discovery] {
        assert_eq!(adapter.told(), "");
    }
}
