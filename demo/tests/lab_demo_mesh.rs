//! The demo in a mesh, in both modes: every cell of its tables.

#![allow(clippy::unwrap_used, clippy::panic, reason = "helpers of tests fail as tests do")]

use isp_testkit::demo::{demo, is_gone, report};
use serde_json::{Value, json};

const PROGRAM: &str = env!("CARGO_BIN_EXE_isp-demo");

/// Source, destination, what was seen (by the gateway, by the application, the policy's status),
/// and whether the request went through the router.
type Row = (&'static str, &'static str, Option<(&'static str, &'static str, u64)>, Option<bool>);

/// Pods have another address in each run.
const POD: &str = "a pod on work-1";
const GATEWAY: &str = "the gateway's pod";

const BEFORE: [Row; 14] = [
    ("client", "external-address", Some(("10.244.1.1", "127.0.0.6", 403)), None),
    ("other-client", "external-address", Some(("10.244.1.1", "127.0.0.6", 403)), None),
    ("pod", "external-address", Some(("10.90.0.12", "127.0.0.6", 403)), Some(false)),
    ("host", "external-address", Some(("10.90.0.12", "127.0.0.6", 403)), Some(false)),
    ("client", "ingress-node-port", Some(("10.244.1.1", "127.0.0.6", 403)), None),
    ("other-client", "ingress-node-port", Some(("10.244.1.1", "127.0.0.6", 403)), None),
    ("pod", "ingress-node-port", Some(("10.244.1.1", "127.0.0.6", 403)), None),
    ("host", "ingress-node-port", Some(("10.244.1.1", "127.0.0.6", 403)), None),
    ("client", "other-node-port", Some(("10.90.0.13", "127.0.0.6", 403)), None),
    ("other-client", "other-node-port", Some(("10.90.0.13", "127.0.0.6", 403)), None),
    ("pod", "other-node-port", Some(("10.90.0.13", "127.0.0.6", 403)), None),
    ("host", "other-node-port", Some(("10.90.0.13", "127.0.0.6", 403)), None),
    ("pod", "cluster-ip", Some((POD, "127.0.0.6", 403)), None),
    ("host", "cluster-ip", Some(("10.90.0.12", "127.0.0.6", 403)), None),
];

const AFTER: [Row; 14] = [
    ("client", "external-address", Some(("198.51.100.10", GATEWAY, 200)), None),
    ("other-client", "external-address", Some(("203.0.113.10", GATEWAY, 403)), None),
    ("pod", "external-address", Some(("10.90.0.12", GATEWAY, 403)), Some(true)),
    ("host", "external-address", Some(("10.90.0.12", GATEWAY, 403)), Some(true)),
    ("client", "ingress-node-port", Some(("198.51.100.10", GATEWAY, 200)), None),
    ("other-client", "ingress-node-port", Some(("203.0.113.10", GATEWAY, 403)), None),
    ("pod", "ingress-node-port", Some(("10.90.0.12", GATEWAY, 403)), None),
    ("host", "ingress-node-port", Some(("10.90.0.12", GATEWAY, 403)), None),
    ("client", "other-node-port", None, None),
    ("other-client", "other-node-port", None, None),
    ("pod", "other-node-port", None, None),
    ("host", "other-node-port", None, None),
    ("pod", "cluster-ip", Some((POD, GATEWAY, 403)), None),
    ("host", "cluster-ip", Some(("10.90.0.12", GATEWAY, 403)), None),
];

/// A cell in the format of its row. Names replace the addresses that differ from run to run.
fn seen(cell: &Value) -> Value {
    let named = |address: &Value| match address.as_str().unwrap_or_default() {
        ip if ip.starts_with("10.244.2.") => json!(POD),
        ip if ip.starts_with("10.244.1.") && ip != "10.244.1.1" => json!(GATEWAY),
        ip => json!(ip),
    };
    let seen = &cell["seen"];
    let seen = match seen {
        Value::Null => Value::Null,
        seen => json!([named(&seen["gateway"]), named(&seen["application"]), seen["status"]]),
    };
    json!([cell["from"], cell["to"], seen, cell["seen"]["throughRouter"]])
}

#[test]
fn in_a_mesh_every_cell_is_as_it_should_be() {
    // `cargo xtask demo` passes its arguments to this program; README uses none.
    let [readme] = isp_lab::docs::commands("README.md", "in_a_mesh_every_cell_is_as_it_should_be").unwrap();
    assert_eq!(readme.words(), [["cargo", "xtask", "demo"]]);
    expect_cells_of_a_mesh(&report(&demo(PROGRAM, "demo-mesh").output().unwrap()));
    assert!(is_gone("demo-mesh"));
}

fn expect_cells_of_a_mesh(report: &Value) {
    for (table, (stage, rows)) in
        [("before", BEFORE), ("after", AFTER), ("restored", BEFORE)].iter().enumerate()
    {
        let told = &report["tables"][table];
        assert_eq!(told["stage"], *stage);
        let cells: Vec<Value> = told["cells"].as_array().unwrap().iter().map(seen).collect();
        let rows: Vec<Value> = rows.iter().map(|row| json!(row)).collect();
        assert_eq!(cells, rows, "{stage}");
    }
    assert_eq!(report["steady"]["failed"], 0);
    assert!(report["steady"]["sent"].as_u64().unwrap() > 500, "{}", report["steady"]);
    assert_eq!(report["asItShouldBe"], true);
}

/// kube-proxy's modes. The campaign runs both.
fn proxy_modes() -> Vec<&'static str> {
    match std::env::var_os("ISP_SOAK_BESIDE") {
        None => vec!["nftables"],
        Some(_) => vec!["nftables", "iptables"],
    }
}

#[test]
fn beside_in_a_mesh_every_cell_is_the_same_and_kube_proxy_is_untouched() {
    for proxy_mode in proxy_modes() {
        let arguments = ["--mode", "beside", "--proxy-mode", proxy_mode];
        let report = report(&demo(PROGRAM, "demo-beside-mesh").args(arguments).output().unwrap());
        expect_cells_of_a_mesh(&report);
        assert_eq!((&report["mode"], &report["kubeProxyChanges"]), (&json!("Beside"), &json!([])));
        assert!(is_gone("demo-beside-mesh"));
    }
}
