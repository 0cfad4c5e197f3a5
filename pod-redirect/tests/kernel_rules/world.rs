//! A pod with rules of one kind, and somebody outside.

use std::fmt;
use std::fs;
use std::net::IpAddr;
use std::path::{Path, PathBuf};

use isp_lab::{End, NetNs};
use isp_pod_rules::decode::PodRules;
use isp_pod_rules::explain::{Facts, Mode, explain};
use isp_pod_rules::packet::{Packet, Protocol, Sender};
use isp_pod_rules::trace::{Outcome, trace};

use crate::sockets;

pub(crate) const POD: [&str; 2] = ["10.1.0.2", "fd01::2"];
pub(crate) const OUTSIDE: [&str; 2] = ["10.1.0.1", "fd01::1"];

/// Who wrote the rules, and for which mode.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Rules {
    None,
    /// Istio's, by `iptables-nft` or `iptables-legacy`.
    Iptables(&'static str, Mode),
    /// Istio's, by `nft`.
    Nft(Mode),
    Ours(Mode),
}

impl fmt::Display for Rules {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let writer = match self {
            Self::None => "none",
            Self::Iptables(flavour, _) => flavour,
            Self::Nft(_) => "nft",
            Self::Ours(_) => "pod-redirect",
        };
        write!(out, "{writer} {}", self.mode().name())
    }
}

impl Rules {
    pub(crate) fn all() -> Vec<Self> {
        let both = [Mode::Redirect, Mode::Tproxy];
        let of = |mode| {
            [Self::Iptables("nft", mode), Self::Iptables("legacy", mode), Self::Nft(mode), Self::Ours(mode)]
        };
        both.into_iter().flat_map(of).chain([Self::None]).collect()
    }

    pub(crate) fn mode(self) -> Mode {
        match self {
            Self::None => Mode::None,
            Self::Iptables(_, mode) | Self::Nft(mode) | Self::Ours(mode) => mode,
        }
    }

    /// The file of Istio's rules.
    fn file(self, extension: &str) -> String {
        let name = format!("istio-{}.{extension}", self.mode().name().to_lowercase());
        let rules: PathBuf =
            Path::new(env!("CARGO_MANIFEST_DIR")).join("../pod-rules/tests/rules").join(name);
        fs::read_to_string(rules).unwrap()
    }
}

pub(crate) struct World {
    places: NetNs,
}

impl World {
    pub(crate) fn new(rules: Rules) -> Self {
        let places = NetNs::new(&["pod", "outside"]).unwrap();
        let pod = End { place: "pod", interface: "eth0", addresses: &["10.1.0.2/24", "fd01::2/64"] };
        let outside = End { place: "outside", interface: "eth0", addresses: &["10.1.0.1/24", "fd01::1/64"] };
        places.cable(pod, outside).unwrap();
        sockets::listen(places.entrance("pod").unwrap(), "pod", &[8080, 15001, 15006, 15021]);
        sockets::listen(places.entrance("outside").unwrap(), "outside", &[9000]);
        let world = Self { places };
        world.load(rules);
        world
    }

    fn load(&self, rules: Rules) {
        if matches!(rules, Rules::Iptables(_, Mode::Tproxy) | Rules::Nft(Mode::Tproxy)) {
            for family in ["-4", "-6"] {
                self.run(&["ip", family, "rule", "add", "fwmark", "1337", "lookup", "133"], "");
                let local = ["route", "add", "local", "default", "dev", "lo", "table", "133"];
                self.run(&[&["ip", family], &local[..]].concat(), "");
            }
        }
        match rules {
            Rules::None => {}
            Rules::Iptables(flavour, _) => {
                let v4 = rules.file("iptables");
                let v6 = v4.replace("127.0.0.1/32", "::1/128").replace("127.0.0.6/32", "::6/128");
                self.run(&[&format!("iptables-{flavour}-restore")], &v4);
                self.run(&[&format!("ip6tables-{flavour}-restore")], &v6);
            }
            Rules::Nft(_) => self.run(&["nft", "-f", "-"], &rules.file("nft")),
            Rules::Ours(mode) => {
                let method = format!("--inbound-method={}", mode.name());
                let settings =
                    ["--inbound-port=15006", "--inbound-except-ports=15021", "--outbound-port=15001"];
                let exempt = ["--exempt-uids=1337", "--exempt-gids=1337"];
                let program = [env!("CARGO_BIN_EXE_pod-redirect"), &method];
                self.run(&[&program[..], &settings, &exempt].concat(), "");
            }
        }
    }

    fn run(&self, command: &[&str], input: &str) {
        self.places.check("pod", command, input).unwrap();
    }

    /// Reads the rules of the pod, as a helper on its node does.
    pub(crate) fn read(&self) -> PodRules {
        let document = self.read_of(POD[0]).unwrap();
        PodRules::decode(&serde_json::from_str(&document).unwrap()).unwrap()
    }

    pub(crate) fn read_of(&self, address: &str) -> Result<String, String> {
        let address = format!("--pod-ip={address}");
        let read = [env!("CARGO_BIN_EXE_pod-redirect"), "read", &address, "--namespaces=/run/netns"];
        let output = self.places.exec("outside", &read, "").unwrap();
        if output.success { Ok(output.stdout) } else { Err(output.stderr) }
    }

    /// Whatever reading might change: legacy tables, which exist once somebody asks for them, and
    /// rules.
    pub(crate) fn state(&self) -> String {
        let state =
            ["sh", "-c", "cat /proc/net/ip_tables_names /proc/net/ip6_tables_names; nft list ruleset"];
        self.places.check("pod", &state, "").unwrap().stdout
    }

    pub(crate) fn explained(read: &PodRules) -> Mode {
        let addresses = POD.map(|address| address.parse().unwrap()).into();
        explain(read, &Facts { addresses, ..Facts::default() }).mode
    }

    /// Where a connection goes, by the trace: the place and the port that listens.
    pub(crate) fn traced(read: &PodRules, who: Option<(u32, u32)>, to: &str, port: u16) -> String {
        let destination: IpAddr = to.parse().unwrap();
        let outside = OUTSIDE[usize::from(destination.is_ipv6())].parse().unwrap();
        let packet = Packet {
            protocol: Protocol::Tcp,
            source: who.is_none().then_some(outside),
            destination: Some(destination),
            port,
            sender: who.map(|(uid, gid)| Sender { uid, gid, mark: 0 }),
        };
        let pod = POD.map(|address| address.parse().unwrap());
        match trace(read, &pod, &packet).outcome {
            Outcome::Delivered { port, .. } => format!("pod:{port}"),
            Outcome::Leaves { port, .. } => format!("outside:{port}"),
            other => other.to_string(),
        }
    }

    /// Where a connection really goes.
    pub(crate) fn connect(&self, who: Option<(u32, u32)>, to: &str, port: u16) -> String {
        let script = format!("exec 3<>/dev/tcp/{to}/{port} && head -n 1 <&3");
        let shell = ["timeout", "5", "bash", "-c", &script];
        let (place, before) = match who {
            None => ("outside", Vec::new()),
            Some((uid, gid)) => {
                let (uid, gid) = (format!("--reuid={uid}"), format!("--regid={gid}"));
                ("pod", vec!["setpriv".to_owned(), uid, gid, "--clear-groups".to_owned()])
            }
        };
        let command: Vec<&str> = before.iter().map(String::as_str).chain(shell).collect();
        let output = self.places.exec(place, &command, "").unwrap();
        format!("{}{}", output.stdout.trim(), output.stderr.trim())
    }
}
