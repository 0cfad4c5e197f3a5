//! The table: each row makes one change to a valid entry.

use serde_json::{Value, json};

/// One change to a valid entry, and the expected error.
pub(super) struct Bad {
    /// A JSON pointer to the changed value, from the entry.
    pub(super) at: &'static str,
    pub(super) to: Value,
    /// The field path in the message, from the entry.
    pub(super) field: &'static str,
    /// The rejected value in the message.
    pub(super) value: &'static str,
    /// An excerpt of the message that says what to do.
    pub(super) way_out: &'static str,
}

fn bad(at: &'static str, to: Value, field: &'static str, value: &'static str, way_out: &'static str) -> Bad {
    Bad { at, to, field, value, way_out }
}

/// The entry as a whole.
pub(super) fn the_entry() -> Vec<Bad> {
    vec![
        bad(
            "/interceptionMode",
            json!("TPROXY"),
            ".interceptionMode",
            "interceptionMode TPROXY",
            "remove one of them",
        ),
        bad("/via", json!("Policy"), ".via", "\"Policy\"", "use Webhook"),
        bad("/redirect", json!({}), ".redirect", "", "give inbound, outbound or both"),
        bad("/redirect", json!({ "initOrder": "First" }), ".redirect", "", "give inbound, outbound or both"),
        bad("/redirect", json!("all"), ".redirect", "\"string\"", "must be of type object"),
        bad(
            "/redirect/initOrder",
            json!("Middle"),
            ".redirect.initOrder",
            "\"Middle\"",
            "\"First\", \"Last\"",
        ),
        bad(
            "/redirect",
            json!({ "outbound": { "port": 15001 } }),
            ".redirect.exempt",
            "15001",
            "exempt the proxy by uids, gids, marks or cgroup",
        ),
        bad(
            "/redirect",
            json!({ "outbound": { "port": 15002, "destinations": ["0.0.0.0/0"] } }),
            ".redirect.exempt",
            "15002",
            "redirect only named outbound.destinations",
        ),
        bad(
            "/redirect",
            json!({ "outbound": { "port": 15003, "destinations": ["10.0.0.0/8", "::/0"] } }),
            ".redirect.exempt",
            "15003",
            "exempt the proxy",
        ),
        bad(
            "/redirect",
            json!({ "outbound": { "port": 15004, "ports": [80] } }),
            ".redirect.exempt",
            "15004",
            "in a loop, until it fails",
        ),
    ]
}

/// Connections to the pod.
pub(super) fn inbound() -> Vec<Bad> {
    const INBOUND: &str = ".redirect.inbound";
    const PORTS: &str = ".redirect.inbound.ports";
    let inbound = |ports: Value| json!({ "method": "REDIRECT", "port": 15006, "ports": ports });
    let many_ports: Value = (1..=65).collect();
    vec![
        bad("/redirect/inbound/method", Value::Null, ".redirect.inbound.method", "", "Required value"),
        bad(
            "/redirect/inbound/method",
            json!("NAT"),
            ".redirect.inbound.method",
            "\"NAT\"",
            "\"TPROXY\", \"REDIRECT\"",
        ),
        bad(
            "/redirect/inbound/method",
            json!("tproxy"),
            ".redirect.inbound.method",
            "\"tproxy\"",
            "\"TPROXY\"",
        ),
        bad("/redirect/inbound/port", Value::Null, ".redirect.inbound.port", "", "Required value"),
        bad("/redirect/inbound/port", json!(0), ".redirect.inbound.port", "0", "greater than or equal to 1"),
        bad(
            "/redirect/inbound/port",
            json!(65536),
            ".redirect.inbound.port",
            "65536",
            "less than or equal to 65535",
        ),
        bad(
            "/redirect/inbound/port",
            json!("15006"),
            ".redirect.inbound.port",
            "\"string\"",
            "must be of type integer",
        ),
        bad("/redirect/inbound", inbound(json!([])), PORTS, "0", "should have at least 1 items"),
        bad(
            "/redirect/inbound",
            inbound(json!([8080, 8080])),
            ".redirect.inbound.ports[1]",
            "8080",
            "Duplicate value",
        ),
        bad(
            "/redirect/inbound",
            inbound(json!([0])),
            ".redirect.inbound.ports[0]",
            "0",
            "greater than or equal to 1",
        ),
        bad(
            "/redirect/inbound",
            inbound(json!(["http"])),
            ".redirect.inbound.ports[0]",
            "\"string\"",
            "must be of type integer",
        ),
        bad("/redirect/inbound", inbound(many_ports), PORTS, "65", "must have at most 64 items"),
        bad(
            "/redirect/inbound",
            inbound(json!([8080, 15006])),
            PORTS,
            "15006",
            "the port of the proxy itself: remove it",
        ),
        bad(
            "/redirect/inbound",
            json!({ "method": "REDIRECT", "port": 15006, "ports": [8080], "exceptPorts": [9090] }),
            ".redirect.inbound.exceptPorts",
            "9090",
            "remove exceptPorts, or remove ports",
        ),
        bad("/redirect/inbound", json!([15006]), INBOUND, "\"array\"", "must be of type object"),
    ]
}

/// Connections of the pod.
pub(super) fn outbound() -> Vec<Bad> {
    const DESTINATIONS: &str = ".redirect.outbound.destinations";
    let many_ranges: Value = (0..33).map(|index| json!(format!("10.{index}.0.0/16"))).collect();
    vec![
        bad(
            "/redirect/outbound/port",
            json!(70000),
            ".redirect.outbound.port",
            "70000",
            "less than or equal to 65535",
        ),
        bad("/redirect/outbound/port", Value::Null, ".redirect.outbound.port", "", "Required value"),
        bad(
            "/redirect/outbound/ports",
            json!([15001]),
            ".redirect.outbound.ports",
            "15001",
            "the port of the proxy itself: remove it",
        ),
        bad(
            "/redirect/outbound/exceptPorts",
            json!([22]),
            ".redirect.outbound.exceptPorts",
            "22",
            "remove exceptPorts, or remove ports",
        ),
        bad(
            "/redirect/outbound/exceptPorts",
            json!([-1]),
            ".redirect.outbound.exceptPorts[0]",
            "-1",
            "greater than or equal to 1",
        ),
        bad("/redirect/outbound/destinations", json!([]), DESTINATIONS, "0", "should have at least 1 items"),
        bad("/redirect/outbound/destinations", many_ranges, DESTINATIONS, "33", "must have at most 32 items"),
        bad(
            "/redirect/outbound/destinations",
            json!(["10.0.0.0/8", "10.0.0.0/8"]),
            ".redirect.outbound.destinations[1]",
            "10.0.0.0/8",
            "Duplicate value",
        ),
        bad(
            "/redirect/outbound/destinations",
            json!(["example.com"]),
            ".redirect.outbound.destinations[0]",
            "\"example.com\"",
            "use one such as 10.96.0.0/12",
        ),
        bad(
            "/redirect/outbound/destinations",
            json!(["10.0.0.0/33"]),
            ".redirect.outbound.destinations[0]",
            "\"10.0.0.0/33\"",
            "use one such as 10.96.0.0/12",
        ),
        bad(
            "/redirect/outbound/destinations",
            json!(["10.0.0.1/8"]),
            ".redirect.outbound.destinations[0]",
            "\"10.0.0.1/8\"",
            "use the first address of the range",
        ),
        bad(
            "/redirect/outbound/destinations",
            json!(["127.0.0.0/8"]),
            ".redirect.outbound.destinations[0]",
            "\"127.0.0.0/8\"",
            "never redirected: remove it",
        ),
        bad(
            "/redirect/outbound/destinations",
            json!(["::1"]),
            ".redirect.outbound.destinations[0]",
            "\"::1\"",
            "never redirected: remove it",
        ),
        bad(
            "/redirect/outbound/exceptDestinations",
            json!(["10.0.0.0/8"]),
            ".redirect.outbound.exceptDestinations",
            "\"10.0.0.0/8\"",
            "remove it from one of the two",
        ),
        bad(
            "/redirect/outbound/exceptDestinations",
            json!(["::/0"]),
            ".redirect.outbound.exceptDestinations",
            "\"::/0\"",
            "name the destinations to except",
        ),
        bad(
            "/redirect/outbound/exceptDestinations",
            json!(["x".repeat(50)]),
            ".redirect.outbound.exceptDestinations[0]",
            "",
            "may not be more than 49 bytes",
        ),
    ]
}

/// How the proxy is recognised.
pub(super) fn exemptions() -> Vec<Bad> {
    const CGROUP: &str = ".redirect.exempt.cgroup";
    const PATH: &str = ".redirect.exempt.cgroup.path";
    let path = |path: &str| json!({ "path": path });
    vec![
        bad(
            "/redirect/exempt",
            json!({}),
            ".redirect.exempt",
            "",
            "give the proxy's uids, gids, marks or cgroup",
        ),
        bad("/redirect/exempt/uids", json!([]), ".redirect.exempt.uids", "0", "should have at least 1 items"),
        bad(
            "/redirect/exempt/uids",
            json!([-1]),
            ".redirect.exempt.uids[0]",
            "-1",
            "greater than or equal to 0",
        ),
        bad(
            "/redirect/exempt/uids",
            json!(["envoy"]),
            ".redirect.exempt.uids[0]",
            "\"string\"",
            "must be of type integer",
        ),
        bad(
            "/redirect/exempt/uids",
            (0..17).collect(),
            ".redirect.exempt.uids",
            "17",
            "must have at most 16 items",
        ),
        bad(
            "/redirect/exempt/gids",
            json!([2_147_483_648_u32]),
            ".redirect.exempt.gids[0]",
            "2147483648",
            "less than or equal to 2147483647",
        ),
        bad("/redirect/exempt/gids", json!([5, 5]), ".redirect.exempt.gids[1]", "5", "Duplicate value"),
        bad(
            "/redirect/exempt/marks",
            json!([0]),
            ".redirect.exempt.marks[0]",
            "0",
            "greater than or equal to 1",
        ),
        bad(
            "/redirect/exempt/marks",
            json!([4_294_967_296_u64]),
            ".redirect.exempt.marks[0]",
            "4294967296",
            "less than or equal to 4294967295",
        ),
        bad(
            "/redirect/exempt/cgroup",
            json!({}),
            CGROUP,
            "neither path nor classId",
            "give the cgroup v2 path or the net_cls class",
        ),
        bad(
            "/redirect/exempt/cgroup",
            json!({ "path": "proxy", "classId": 7 }),
            CGROUP,
            "\"proxy\"",
            "remove one of them",
        ),
        bad(
            "/redirect/exempt/cgroup",
            json!({ "classId": 0 }),
            ".redirect.exempt.cgroup.classId",
            "0",
            "greater than or equal to 1",
        ),
        bad("/redirect/exempt/cgroup", path("/proxy"), PATH, "\"/proxy\"", "relative to the root"),
        bad("/redirect/exempt/cgroup", path("a/../b"), PATH, "\"a/../b\"", "as in proxy/envoy"),
        bad("/redirect/exempt/cgroup", path("a,b"), PATH, "\"a,b\"", "use names without commas"),
        bad("/redirect/exempt/cgroup", path(""), PATH, "\"\"", "should be at least 1 chars long"),
    ]
}
