//! The programs that are compared. All of them redirect all inbound connections by TPROXY and all
//! outbound connections, except those of user and group 1337, in both families.

use std::path::{Path, PathBuf};
use std::process::Command;

use isp_lab::provision::{self, KubernetesVersion};

const OURS: &str = "--inbound-method=TPROXY --inbound-port=15006 --inbound-except-ports=15090,15021,15020 \
    --outbound-port=15001 --exempt-uids=1337 --exempt-gids=1337";
/// The arguments that Istio's injector writes, with both families.
const ISTIO: &str = "istio-iptables -p 15001 -z 15006 -u 1337 -m TPROXY -i * -b * -d 15090,15021,15020 \
    --log_output_level=default:info --dual-stack";

/// A program with its arguments.
pub(crate) struct Program {
    name: &'static str,
    path: PathBuf,
    arguments: Vec<&'static str>,
}

impl Program {
    pub(crate) fn all() -> [Self; 3] {
        let ours = std::env::var_os("ISP_BENCH_PROGRAM").expect(
            "`cargo xtask bench pod-redirect` builds the program as in the images and passes its path",
        );
        let say = |line: &str| eprintln!("{line}");
        let istio = provision::program_of(KubernetesVersion::default(), "pilot-agent", say).unwrap();
        let ours = Self { name: "pod-redirect", path: ours.into(), arguments: words(OURS) };
        let iptables = Self { name: "Istio, iptables", path: istio.clone(), arguments: words(ISTIO) };
        let mut nftables = Self { name: "Istio, nftables", path: istio, arguments: words(ISTIO) };
        nftables.arguments.push("--native-nftables");
        [ours, iptables, nftables]
    }

    pub(crate) fn name(&self) -> &'static str {
        self.name
    }

    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    pub(crate) fn command(&self) -> Command {
        let mut command = Command::new(&self.path);
        command.args(&self.arguments);
        command
    }
}

fn words(arguments: &'static str) -> Vec<&'static str> {
    arguments.split_whitespace().collect()
}

/// The version of iptables with the back end that Istio's program prefers.
pub(crate) fn iptables_version() -> String {
    let output = Command::new("iptables-nft").arg("--version").output().unwrap();
    String::from_utf8(output.stdout).unwrap().trim().to_owned()
}
