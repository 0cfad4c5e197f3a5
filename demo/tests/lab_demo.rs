//! The demo without a mesh, as people run it in each IP family, and as they interrupt it.

#![allow(clippy::unwrap_used, clippy::panic, reason = "helpers of tests fail as tests do")]

use std::process::Stdio;
use std::time::{Duration, Instant};

use isp_testkit::demo::{demo, is_gone, report};
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use serde_json::{Value, json};

const PROGRAM: &str = env!("CARGO_BIN_EXE_isp-demo");

/// Per family: the client's address, and the ingress node's address on its pod bridge.
const FAMILIES: [(&str, &str, &str); 2] =
    [("IPv4", "198.51.100.10", "10.244.1.1"), ("IPv6", "2001:db8:1::a", "fd00:244:0:1::1")];
/// The number of requests per family.
const QUESTIONS: usize = 14;

/// The families of a cluster.
#[derive(Clone, Copy)]
enum Families {
    Ipv4,
    Ipv6,
    Both,
}

impl Families {
    fn option(self) -> Option<&'static str> {
        match self {
            Self::Ipv4 => None,
            Self::Ipv6 => Some("--ipv6-only"),
            Self::Both => Some("--dual-stack"),
        }
    }

    fn has(self, family: &str) -> bool {
        match self {
            Self::Ipv4 => family == "IPv4",
            Self::Ipv6 => family == "IPv6",
            Self::Both => true,
        }
    }
}

/// Families and kube-proxy modes. The demo in a mesh has IPv4 in nftables mode, so the most telling
/// combination is the other one. The campaign runs all that are left.
fn combinations(campaign: &str) -> Vec<(Families, &'static str)> {
    let most_telling = (Families::Both, "iptables");
    if std::env::var_os(campaign).is_none() {
        return vec![most_telling];
    }
    let others = [
        (Families::Both, "nftables"),
        (Families::Ipv6, "nftables"),
        (Families::Ipv6, "iptables"),
        (Families::Ipv4, "iptables"),
    ];
    [most_telling].into_iter().chain(others).collect()
}

#[test]
fn with_ipv6_every_cell_is_as_it_should_be_in_each_family() {
    for (families, proxy_mode) in combinations("ISP_SOAK_FAMILIES") {
        expect_cells_of_each_family(families, proxy_mode, "Filter");
    }
}

#[test]
fn beside_with_two_families_every_cell_is_the_same_and_kube_proxy_is_untouched() {
    for (families, proxy_mode) in combinations("ISP_SOAK_BESIDE") {
        expect_cells_of_each_family(families, proxy_mode, "Beside");
    }
}

fn expect_cells_of_each_family(families: Families, proxy_mode: &str, mode: &str) {
    let arguments = ["--no-istio", "--proxy-mode", proxy_mode, "--mode", mode];
    let arguments = arguments.into_iter().chain(families.option());
    let report = report(&demo(PROGRAM, "demo-families").args(arguments).output().unwrap());
    let wanted: Vec<_> = FAMILIES.into_iter().filter(|(family, ..)| families.has(family)).collect();
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
        let mut child = demo(PROGRAM, "demo-broken")
            .args(arguments)
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
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
        // The kernel may still be ending the processes of a lab that was killed as it started.
        let limit = Instant::now() + Duration::from_secs(30);
        while !left_over("demo-broken").is_empty() && Instant::now() < limit {
            std::thread::sleep(Duration::from_millis(100));
        }
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
