//! The demo as people run it, and as they interrupt it.

#![allow(clippy::unwrap_used, clippy::panic, reason = "helpers of tests fail as tests do")]

use std::process::{Command, Output, Stdio};
use std::time::{Duration, Instant};

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use serde_json::{Value, json};

fn demo(name: &str) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_isp-demo"));
    command.args(["--json", "--name", name]).stdin(Stdio::null());
    command
}

fn report(output: &Output) -> Value {
    let told = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{told}\n{}", String::from_utf8_lossy(&output.stdout));
    assert!(!told.contains('\x1b'), "control characters without a terminal:\n{told}");
    println!("{told}");
    serde_json::from_slice(&output.stdout).unwrap()
}

fn is_gone(name: &str) -> bool {
    isp_lab::list().unwrap().iter().all(|(lab, _)| lab != name)
}

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
    expect_cells_of_a_mesh(&report(&demo("demo-mesh").output().unwrap()));
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

/// kube-proxy's modes. The campaign runs all combinations of a demo in mode Beside.
fn proxy_modes(most_telling: &'static str) -> Vec<&'static str> {
    match std::env::var_os("ISP_SOAK_BESIDE") {
        None => vec![most_telling],
        Some(_) => vec!["nftables", "iptables"],
    }
}

#[test]
fn beside_in_a_mesh_every_cell_is_the_same_and_kube_proxy_is_untouched() {
    for proxy_mode in proxy_modes("nftables") {
        let arguments = ["--mode", "beside", "--proxy-mode", proxy_mode];
        let report = report(&demo("demo-beside-mesh").args(arguments).output().unwrap());
        expect_cells_of_a_mesh(&report);
        assert_eq!((&report["mode"], &report["kubeProxyChanges"]), (&json!("Beside"), &json!([])));
        assert!(is_gone("demo-beside-mesh"));
    }
}

#[test]
fn without_a_mesh_and_with_iptables_in_one_mode_after_the_other() {
    for mode in ["Filter", "Beside"] {
        let arguments = ["--no-istio", "--proxy-mode", "iptables", "--mode", mode];
        let report = report(&demo("demo-plain").args(arguments).output().unwrap());
        let client = |table: usize| report["tables"][table]["cells"][0]["seen"]["application"].clone();
        assert_eq!([0, 1, 2].map(client), ["10.244.1.1", "198.51.100.10", "10.244.1.1"]);
        assert_eq!((&report["asItShouldBe"], &report["steady"]["failed"]), (&json!(true), &json!(0)));
        let changes = if mode == "Beside" { json!([]) } else { Value::Null };
        assert_eq!((&report["mode"], &report["kubeProxyChanges"]), (&json!(mode), &changes));
        assert!(is_gone("demo-plain"));
    }
}

/// Per family: the client's address, and the ingress node's address on its pod bridge.
const FAMILIES: [(&str, &str, &str); 2] =
    [("IPv4", "198.51.100.10", "10.244.1.1"), ("IPv6", "2001:db8:1::a", "fd00:244:0:1::1")];
/// The number of requests per family.
const QUESTIONS: usize = BEFORE.len();

/// Family flags and kube-proxy modes. The campaign runs all combinations.
fn families() -> Vec<(&'static str, &'static str)> {
    let most_telling = ("--dual-stack", "nftables");
    if std::env::var_os("ISP_SOAK_FAMILIES").is_none() {
        return vec![most_telling];
    }
    let others = [("--dual-stack", "iptables"), ("--ipv6-only", "nftables"), ("--ipv6-only", "iptables")];
    [most_telling].into_iter().chain(others).collect()
}

#[test]
fn with_ipv6_every_cell_is_as_it_should_be_in_each_family() {
    for (flag, proxy_mode) in families() {
        expect_cells_of_each_family(flag, proxy_mode, "Filter");
    }
}

#[test]
fn beside_with_two_families_every_cell_is_the_same_and_kube_proxy_is_untouched() {
    for proxy_mode in proxy_modes("iptables") {
        expect_cells_of_each_family("--dual-stack", proxy_mode, "Beside");
    }
}

fn expect_cells_of_each_family(flag: &str, proxy_mode: &str, mode: &str) {
    let arguments = ["--no-istio", flag, "--proxy-mode", proxy_mode, "--mode", mode];
    let report = report(&demo("demo-families").args(arguments).output().unwrap());
    let has = |family: &str| flag == "--dual-stack" || family == "IPv6";
    let wanted: Vec<_> = FAMILIES.into_iter().filter(|(family, ..)| has(family)).collect();
    assert_eq!(report["ipFamilies"], json!(wanted.iter().map(|(name, ..)| name).collect::<Vec<_>>()));
    for (stage, table) in report["tables"].as_array().unwrap().iter().enumerate() {
        let cells = table["cells"].as_array().unwrap();
        assert_eq!(cells.len(), wanted.len() * QUESTIONS);
        for (cells, (family, client, bridge)) in cells.chunks(QUESTIONS).zip(&wanted) {
            // The client's request to the external IP, before, after and restored.
            let seen = if stage == 1 { client } else { bridge };
            assert_eq!(cells[0]["own"], *client, "{family}");
            assert_eq!(cells[0]["seen"]["application"], *seen, "{family}, {stage}");
        }
    }
    assert_eq!((&report["asItShouldBe"], &report["steady"]["failed"]), (&json!(true), &json!(0)));
    let changes = if mode == "Beside" { json!([]) } else { Value::Null };
    assert_eq!((&report["mode"], &report["kubeProxyChanges"]), (&json!(mode), &changes));
    assert!(is_gone("demo-families"));
}

/// The moments to interrupt it, in seconds since its start, and its arguments. The campaign has
/// more, and also runs with Istio.
fn moments() -> Vec<(f64, &'static [&'static str])> {
    let spread = |count: u32, seconds: f64, arguments: &'static [&'static str]| {
        (0..count).map(move |n| (0.3 + seconds * f64::from(n) / f64::from(count), arguments))
    };
    // Covers most of the demo's duration, without and with Istio.
    let plain = |count| spread(count, 70.0, &["--no-istio"]);
    match std::env::var("ISP_SOAK_DEMO") {
        Err(_) => plain(3).collect(),
        Ok(count) => {
            let count = count.parse().unwrap();
            plain(count).chain(spread(count, 100.0, &[])).collect()
        }
    }
}

#[test]
fn broken_off_at_any_moment_it_leaves_nothing_behind() {
    for (moment, arguments) in moments() {
        let mut child =
            demo("demo-broken").args(arguments).stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
        std::thread::sleep(Duration::from_secs_f64(moment));
        let pid = Pid::from_raw(child.id().try_into().unwrap());
        // It may have ended already.
        let _ = kill(pid, Signal::SIGINT);
        let told = Instant::now();
        let status = child.wait().unwrap();
        println!(
            "broken off after {moment:.1} s {arguments:?}: ended with {status} {:.1} s later",
            told.elapsed().as_secs_f64()
        );
        assert!(matches!(status.code(), Some(0 | 130)), "{status}");
        assert!(told.elapsed() < Duration::from_mins(1), "whoever breaks it off does not want to wait");
        assert!(is_gone("demo-broken"));
        assert_eq!(left_over("demo-broken"), [""; 0]);
    }
}

/// The remaining processes, mounts and control groups of a lab.
fn left_over(name: &str) -> Vec<String> {
    let of_lab = format!("/labs/{name}/");
    let processes = std::fs::read_dir("/proc").unwrap().flatten().filter_map(|entry| {
        let line = std::fs::read(entry.path().join("cmdline")).ok()?;
        let line = String::from_utf8_lossy(&line).replace('\0', " ");
        line.contains(&of_lab).then_some(line)
    });
    let groups = ["/sys/fs/cgroup", "/sys/fs/cgroup/memory", "/sys/fs/cgroup/cpu"]
        .map(|root| format!("{root}/isp-lab/{name}"))
        .into_iter()
        .filter(|path| std::path::Path::new(path).exists());
    let mounts = std::fs::read_to_string("/proc/self/mountinfo").unwrap();
    let mounts = mounts.lines().filter(|line| line.contains(&of_lab)).map(str::to_owned);
    processes.chain(mounts).chain(groups).collect()
}
