mod paths;

use super::*;
use crate::screen::Screen;

fn address(text: &str) -> IpAddr {
    text.parse().unwrap()
}

fn addresses(gateway: Option<&str>) -> Addresses {
    Addresses {
        client: address("198.51.100.10"),
        other_client: address("203.0.113.10"),
        pod: address("10.244.2.5"),
        host: address("10.90.0.12"),
        ingress_node: address("10.90.0.11"),
        ingress_bridge: address("10.244.1.1"),
        other_node: address("10.90.0.13"),
        external: address("192.0.2.10"),
        cluster_ip: address("10.96.7.7"),
        node_port: 30080,
        gateway: gateway.map(address),
    }
}

fn table(stage: Stage, addresses: &Addresses) -> Table {
    let cell = |(asker, target)| {
        Cell::new(stage, asker, target, addresses, expected(stage, asker, target, addresses))
    };
    Table { stage, cells: questions().map(cell).collect() }
}

#[test]
fn with_the_object_nothing_is_wrong_and_without_it_every_way_in_is() {
    for gateway in [None, Some("10.244.1.7")] {
        let addresses = addresses(gateway);
        for cell in table(Stage::After, &addresses).cells {
            assert!(!cell.wrong.any(), "{cell:?}");
        }
        for cell in table(Stage::Before, &addresses).cells {
            // A ClusterIP was always fine from inside the cluster, except for the sidecar.
            let inside = cell.to == Target::ClusterIp && gateway.is_none();
            assert_eq!(cell.wrong.any(), !inside, "{cell:?}");
        }
    }
}

#[test]
fn before_the_policy_refuses_the_client_that_it_names_and_after_it_lets_in_nobody_else() {
    let addresses = addresses(Some("10.244.1.7"));
    let let_in = |stage| -> Vec<(Asker, Target)> {
        let cells = table(stage, &addresses).cells.into_iter();
        cells
            .filter(|cell| matches!(&cell.outcome, Outcome::Seen(seen) if seen.status == 200))
            .map(|cell| (cell.from, cell.to))
            .collect()
    };
    assert_eq!(let_in(Stage::Before), []);
    let ways = [Target::ExternalAddress, Target::IngressNodePort].map(|target| (Asker::Client, target));
    assert_eq!(let_in(Stage::After), ways);
    assert_eq!(let_in(Stage::Restored), []);
}

#[test]
fn restored_is_as_before() {
    let addresses = addresses(Some("10.244.1.7"));
    let (before, restored) = (table(Stage::Before, &addresses), table(Stage::Restored, &addresses));
    assert_eq!(differences(&before, &restored), [""; 0]);
    let after = table(Stage::After, &addresses);
    assert_eq!(differences(&before, &after).len(), before.cells.len());
    assert_eq!(
        differences(&before, &after)[0],
        "  client to external IP                       10.244.1.1 at the gateway, 127.0.0.6 at the application, 403  ->  198.51.100.10 at the gateway, 10.244.1.7 at the application, 200"
    );
}

#[test]
fn what_is_not_as_it_should_be_is_told_and_silence_where_it_is_meant_is_fine() {
    let addresses = addresses(None);
    let silent = || Outcome::Silent("timed out".to_owned());
    let cell = |stage, target| Cell::new(stage, Asker::Client, target, &addresses, silent());
    let meant = cell(Stage::After, Target::OtherNodePort);
    assert!(meant.unexpected.is_none() && !meant.wrong.any());
    let fault = cell(Stage::After, Target::ExternalAddress);
    assert!(fault.unexpected.is_some() && fault.wrong.any());
    let table = Table { stage: Stage::After, cells: vec![meant, fault] };
    assert!(!table.is_as_it_should_be());
    let screen = Screen::new(false);
    let lines = lines(&table, false, &screen);
    assert!(lines[1].ends_with("no answer, as intended"), "{}", lines[1]);
    assert!(
        lines[2].ends_with("no answer (timed out) !  UNEXPECTED, not 198.51.100.10 at the application"),
        "{}",
        lines[2]
    );
    assert!(lines.iter().all(|line| !line.contains('\x1b')));
}

#[test]
fn ipv6_addresses_are_asked_in_brackets_and_printed_in_columns() {
    let mut addresses = addresses(None);
    addresses.client = address("2001:db8:1::a");
    addresses.ingress_node = address("fd00:90::b");
    let cells = table(Stage::After, &addresses).cells;
    let asked = cells.iter().find(|cell| cell.to == Target::IngressNodePort).unwrap();
    assert_eq!(asked.address, "[fd00:90::b]:30080");
    let printed = lines(&Table { stage: Stage::After, cells: cells.clone() }, false, &Screen::new(false));
    let asked = |line: &&String| line.starts_with("  client") && line.contains("ingress node");
    let line = printed.iter().find(asked).unwrap();
    assert!(line.ends_with("ingress node [fd00:90::b]:30080  2001:db8:1::a"), "{line}");
}

#[test]
fn a_cell_is_json_that_machines_can_compare() {
    let addresses = addresses(Some("10.244.1.7"));
    let outcome = expected(Stage::Before, Asker::Host, Target::ExternalAddress, &addresses);
    let cell = Cell::new(Stage::Before, Asker::Host, Target::ExternalAddress, &addresses, outcome);
    assert_eq!(
        serde_json::to_value(&cell).unwrap(),
        serde_json::json!({
            "from": "host", "to": "external-address", "own": "10.90.0.12", "address": "192.0.2.10:80",
            "seen": {"gateway": "10.90.0.12", "application": "127.0.0.6", "status": 403, "throughRouter": false},
            "wrong": {"gateway": false, "application": true, "status": false, "way": true},
        })
    );
}
