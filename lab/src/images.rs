//! The lab's images. There is no registry: each image is an archive of programs on this machine and
//! the libraries they link to. It is cached until one of its files changes.

use std::env;
use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;

use crate::dirs;
use crate::image::Image;
use crate::lab::LabError;
use crate::node::PAUSE_IMAGE;
use crate::provision::{KubernetesVersion, Programs, Progress, ProvisionError, find_program};
use crate::release::{NOBODY, PROGRAMS};

/// The image of the `echo` application, which answers with the addresses it sees.
pub const ECHO_IMAGE: &str = "lab.local/echo:1";
pub(crate) const COREDNS_IMAGE: &str = "registry.k8s.io/coredns/coredns:v1.15.0";
/// istiod.
pub(crate) const PILOT_IMAGE: &str = "lab.local/istio/pilot:lab";
/// The sidecar and gateway: Envoy and Istio's agent.
pub(crate) const PROXY_IMAGE: &str = "lab.local/istio/proxyv2:lab";

pub(crate) fn kube_proxy_image(version: KubernetesVersion) -> String {
    format!("registry.k8s.io/kube-proxy:v{version}")
}

/// The archives of all images that the lab starts with.
pub(crate) fn archives(
    programs: &Programs,
    version: KubernetesVersion,
    istio: bool,
    progress: Progress,
) -> Result<Vec<PathBuf>, LabError> {
    let mut images = vec![pause()?, echo()?, kube_proxy(programs, version)?, coredns(programs)?];
    if istio {
        images.push(pilot(programs)?);
        images.push(proxy(programs)?);
    }
    let directory = image_directory()?;
    images.iter().map(|image| archive(image, &directory, progress)).collect()
}

/// Packs a program of this workspace as an image that runs as `user`, for
/// [`Lab::load_image`](crate::Lab::load_image).
pub fn pack(reference: &str, program: &Path, user: &str) -> Result<PathBuf, LabError> {
    let name = program.file_name().unwrap_or_default().to_string_lossy();
    let place = format!("/usr/local/bin/{name}");
    let image = Image::new(reference).program(program, &place)?.user(user).entrypoint([place]);
    pack_image(&image)
}

/// The archive of a program of this workspace, as the image `lab.local/<its name>:1`.
pub(crate) fn program(path: &Path) -> Result<PathBuf, LabError> {
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    pack(&format!("lab.local/{name}:1"), path, NOBODY)
}

/// The archives of the released programs, as far as they are built. One that cannot be packed, for
/// example because it is being built, is missing; loading it later reports the reason.
pub(crate) fn programs() -> Vec<PathBuf> {
    let built = PROGRAMS.into_iter().filter_map(|(name, ..)| own_program(name).ok());
    built.filter_map(|path| program(&path).ok()).collect()
}

/// Packs an image that is not one of the lab's own.
pub(crate) fn pack_image(image: &Image) -> Result<PathBuf, LabError> {
    archive(image, &image_directory()?, |_| {})
}

/// The minimum age before an outdated archive is removed.
const OLD: Duration = Duration::from_hours(1);

fn image_directory() -> Result<PathBuf, LabError> {
    let directory = dirs::cache()?.join("images");
    fs::create_dir_all(&directory).map_err(|source| LabError::File { path: directory.clone(), source })?;
    Ok(directory)
}

fn archive(image: &Image, directory: &Path, progress: Progress) -> Result<PathBuf, LabError> {
    let digest = image.inputs_digest()?;
    let readable = image.name().replace(['/', ':'], "_");
    let path = directory.join(format!("{readable}-{}.tar", &digest.hex()[..12]));
    if !path.is_file() {
        progress(&format!("packing {}", image.name()));
        remove_older(directory, &readable);
        image.write_archive(&path)?;
    }
    Ok(path)
}

/// Removes outdated archives of the same image. Recent ones stay, because another checkout may be
/// about to load them.
fn remove_older(directory: &Path, readable: &str) {
    let Ok(entries) = fs::read_dir(directory) else { return };
    let is_old = |entry: &fs::DirEntry| {
        let modified = entry.metadata().and_then(|metadata| metadata.modified()).ok();
        modified.and_then(|modified| modified.elapsed().ok()).is_some_and(|age| age > OLD)
    };
    for entry in entries.flatten() {
        if entry.file_name().to_string_lossy().starts_with(&format!("{readable}-")) && is_old(&entry) {
            let _ = fs::remove_file(entry.path());
        }
    }
}

/// The path of a program of this workspace, next to the running one.
pub(crate) fn own_program(name: &str) -> Result<PathBuf, LabError> {
    let running = env::current_exe().map_err(|source| LabError::File { path: name.into(), source })?;
    // Programs are in the profile's directory, tests in `deps` below it.
    let directories = running.ancestors().skip(1).take(2);
    directories
        .map(|directory| directory.join(name))
        .find(|path| path.is_file())
        .ok_or_else(|| LabError::NotBuilt(running.with_file_name(name)))
}

/// The host path of the `echo` program, to run it in the network of a client or node.
pub fn echo_program() -> Result<PathBuf, LabError> {
    own_program("echo")
}

fn system_program(name: &str) -> Result<PathBuf, LabError> {
    Ok(find_program(name).ok_or_else(|| ProvisionError::NotProvisioned(name.to_owned()))?)
}

fn pause() -> Result<Image, LabError> {
    Ok(Image::new(PAUSE_IMAGE).program(echo_program()?, "/echo")?.entrypoint(["/echo", "pause"]))
}

fn echo() -> Result<Image, LabError> {
    Ok(Image::new(ECHO_IMAGE).program(echo_program()?, "/echo")?.entrypoint(["/echo", "serve"]))
}

/// kube-proxy and the tools it uses to program the kernel.
fn kube_proxy(programs: &Programs, version: KubernetesVersion) -> Result<Image, LabError> {
    let image = Image::new(kube_proxy_image(version))
        .program(programs.path("kube-proxy")?, "/usr/local/bin/kube-proxy")?
        .program(system_program("conntrack")?, "/usr/sbin/conntrack")?;
    Ok(packet_filters(image)?.entrypoint(["/usr/local/bin/kube-proxy"]))
}

/// The path of the first process in a virtual machine.
pub(crate) const MACHINE_INIT: &str = "/usr/local/bin/isp-lab";

/// The base of every virtual machine: the first process, its dependencies, and the tools kube-proxy
/// uses to program the kernel.
pub(crate) fn machine() -> Result<Image, LabError> {
    let mut image = Image::new("lab.local/machine")
        .program(own_program("isp-lab")?, MACHINE_INIT)?
        .program(echo_program()?, "/usr/local/bin/echo")?
        // The kernel runs modprobe from this path.
        .program(system_program("modprobe")?, "/sbin/modprobe")?;
    for name in ["ip", "ipset", "conntrack"] {
        image = image.program(system_program(name)?, format!("/usr/sbin/{name}"))?;
    }
    for directory in ["/proc", "/sys", "/dev"] {
        image = image.directory(directory, 0o755);
    }
    packet_filters(image)
}

/// nft, and iptables (nft backend) with its extensions.
fn packet_filters(mut image: Image) -> Result<Image, LabError> {
    let filters = system_program("xtables-nft-multi")?;
    image = image
        .program(system_program("nft")?, "/usr/sbin/nft")?
        .program(&filters, "/usr/sbin/xtables-nft-multi")?
        .plugins(xtables_directory()?)?
        .file("/etc/protocols", "/etc/protocols")?
        .directory("/run", 0o755)
        .directory("/tmp", 0o1777);
    for name in ["iptables", "ip6tables"] {
        for suffix in ["", "-save", "-restore"] {
            image = image.symlink(format!("/usr/sbin/{name}{suffix}"), "xtables-nft-multi");
        }
    }
    Ok(image)
}

/// The directory of the iptables extensions, which depends on the architecture.
fn xtables_directory() -> Result<PathBuf, LabError> {
    let candidates =
        [format!("/usr/lib/{}-linux-gnu/xtables", env::consts::ARCH), "/usr/lib/xtables".to_owned()];
    let missing = || ProvisionError::NotProvisioned("xtables extensions".to_owned());
    let found = candidates.into_iter().map(PathBuf::from).find(|path| path.is_dir());
    Ok(found.ok_or_else(missing)?)
}

fn coredns(programs: &Programs) -> Result<Image, LabError> {
    Ok(Image::new(COREDNS_IMAGE).program(programs.path("coredns")?, "/coredns")?.entrypoint(["/coredns"]))
}

fn pilot(programs: &Programs) -> Result<Image, LabError> {
    Ok(Image::new(PILOT_IMAGE)
        .program(programs.path("pilot-discovery")?, "/usr/local/bin/pilot-discovery")?
        .directory("/tmp", 0o1777)
        .passwd_entry("istio-proxy", 1337, 1337, "/home/istio-proxy")
        .user("1337:1337")
        .entrypoint(["/usr/local/bin/pilot-discovery"]))
}

fn proxy(programs: &Programs) -> Result<Image, LabError> {
    let image = Image::new(PROXY_IMAGE)
        .program(programs.path("pilot-agent")?, "/usr/local/bin/pilot-agent")?
        .program(programs.path("envoy")?, "/usr/local/bin/envoy")?
        .program(system_program("ip")?, "/usr/sbin/ip")?
        .file(programs.path("envoy_bootstrap_tmpl.json")?, "/var/lib/istio/envoy/envoy_bootstrap_tmpl.json")?
        .directory("/etc/istio/proxy", 0o777)
        .directory("/var/run/secrets", 0o755)
        .passwd_entry("istio-proxy", 1337, 1337, "/home/istio-proxy")
        .user("1337:1337");
    Ok(packet_filters(image)?.entrypoint(["/usr/local/bin/pilot-agent"]))
}
