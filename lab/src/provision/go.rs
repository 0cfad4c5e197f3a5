//! Programs built from Go modules. The module files under `lab/go/` pin every version and checksum.

use std::env;
use std::fmt;
use std::fs;
use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::str::FromStr;
use std::time::{Duration, Instant};

use serde::{Deserialize, Serialize};

use super::{Progress, ProvisionError, Purpose};
use crate::command::{self, CommandError, describe};
use crate::image::Digest;

/// A Kubernetes release with pinned modules.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub enum KubernetesVersion {
    /// 1.37.0
    #[default]
    V1_37,
    /// 1.33.13
    V1_33,
}

impl KubernetesVersion {
    pub(super) const ALL: [Self; 2] = [Self::V1_37, Self::V1_33];

    fn module(self) -> &'static str {
        match self {
            Self::V1_37 => "kubernetes-1.37",
            Self::V1_33 => "kubernetes-1.33",
        }
    }

    /// The release, without a leading `v`.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::V1_37 => "1.37.0",
            Self::V1_33 => "1.33.13",
        }
    }
}

impl fmt::Display for KubernetesVersion {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

impl FromStr for KubernetesVersion {
    type Err = ProvisionError;

    fn from_str(asked: &str) -> Result<Self, ProvisionError> {
        let plain = asked.strip_prefix('v').unwrap_or(asked);
        Self::ALL.into_iter().find(|version| version.as_str() == plain).ok_or_else(|| {
            ProvisionError::UnknownVersion {
                asked: asked.to_owned(),
                known: Self::ALL.map(Self::as_str).join(", "),
            }
        })
    }
}

/// One program of a pinned module.
#[derive(Debug, Clone)]
pub(super) struct GoProgram {
    pub(super) name: &'static str,
    pub(super) version: &'static str,
    module: &'static str,
    package: String,
    linker_flags: String,
}

const ISTIO: &str = "1.31-20260827";

/// The programs that a purpose needs. Long builds come first, so that failures show early.
pub(super) fn wanted(purpose: Purpose, kubernetes: KubernetesVersion) -> Vec<GoProgram> {
    let kube = |name| GoProgram {
        name,
        version: kubernetes.as_str(),
        module: kubernetes.module(),
        package: format!("k8s.io/kubernetes/cmd/{name}"),
        linker_flags: format!("-X k8s.io/component-base/version.gitVersion=v{kubernetes}"),
    };
    let plain = |name, version, module, package: &str| GoProgram {
        name,
        version,
        module,
        package: package.to_owned(),
        linker_flags: String::new(),
    };
    let containerd = |name| GoProgram {
        linker_flags: "-X github.com/containerd/containerd/v2/version.Version=v2.4.2".to_owned(),
        ..plain(name, "2.4.2", "containerd", &format!("github.com/containerd/containerd/v2/cmd/{name}"))
    };
    let cni = |name, kind: &str| {
        plain(name, "1.9.1", "cni", &format!("github.com/containernetworking/plugins/plugins/{kind}/{name}"))
    };
    let istio = |name, package: &str| plain(name, ISTIO, "istio", &format!("istio.io/istio/{package}"));

    let api = [
        kube("kube-apiserver"),
        kube("kube-controller-manager"),
        kube("kubectl"),
        plain("etcd", "3.7.3", "etcd", "go.etcd.io/etcd/server/v3"),
    ];
    let nodes = [
        kube("kubelet"),
        kube("kube-scheduler"),
        kube("kube-proxy"),
        containerd("containerd"),
        containerd("containerd-shim-runc-v2"),
        containerd("ctr"),
        cni("bridge", "main"),
        cni("loopback", "main"),
        cni("host-local", "ipam"),
        plain("coredns", "1.15.0", "coredns", "github.com/coredns/coredns"),
    ];
    let mesh = [
        istio("pilot-discovery", "pilot/cmd/pilot-discovery"),
        istio("istioctl", "istioctl/cmd/istioctl"),
        istio("pilot-agent", "pilot/cmd/pilot-agent"),
    ];
    let simulated = [plain("kwok", "0.8.0", "kwok", "sigs.k8s.io/kwok/cmd/kwok")];
    match purpose {
        Purpose::Browser | Purpose::Kernel => Vec::new(),
        Purpose::Api => api.into_iter().chain(simulated).collect(),
        Purpose::Cluster => api.into_iter().chain(nodes).collect(),
        Purpose::Mesh | Purpose::Lab => api.into_iter().chain(nodes).chain(mesh).collect(),
    }
}

/// Helm, which installs the chart.
pub(super) fn helm() -> GoProgram {
    GoProgram {
        name: "helm",
        version: "4.3.1",
        module: "helm",
        package: "helm.sh/helm/v4/cmd/helm".to_owned(),
        linker_flags: "-X helm.sh/helm/v4/internal/version.version=v4.3.1".to_owned(),
    }
}

/// The path of Envoy's bootstrap template, a file of the Istio module that the proxy image
/// contains.
pub(super) fn istio_bootstrap() -> Result<PathBuf, ProvisionError> {
    let mut list = Command::new("go");
    list.args(["list", "-mod=readonly", "-m", "-f", "{{.Dir}}", "istio.io/istio"])
        .current_dir(module_directory("istio"));
    let printed = command::run(&mut list)?.stdout;
    Ok(Path::new(printed.trim()).join("tools/packaging/common/envoy_bootstrap.json"))
}

fn module_directory(module: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("go").join(module)
}

impl GoProgram {
    /// The path of the program, if it exists in `KUBEBUILDER_ASSETS` (for control planes only) or
    /// in the cache.
    pub(super) fn present(&self, cache: &Path, purpose: Purpose) -> Result<Option<PathBuf>, ProvisionError> {
        if purpose == Purpose::Api
            && let Some(assets) = env::var_os("KUBEBUILDER_ASSETS")
        {
            let path = Path::new(&assets).join(self.name);
            if path.is_file() {
                return Ok(Some(path));
            }
        }
        let path = self.place(cache)?;
        Ok(path.is_file().then_some(path))
    }

    pub(super) fn build(&self, cache: &Path, progress: Progress) -> Result<PathBuf, ProvisionError> {
        let path = self.place(cache)?;
        let partial = path.with_extension("partial");
        let directory = path.parent().unwrap_or(cache);
        fs::create_dir_all(directory)
            .map_err(|source| ProvisionError::File { path: directory.to_owned(), source })?;

        let mut build = Command::new("go");
        build
            .args(["build", "-v", "-mod=readonly", "-trimpath", "-buildvcs=false"])
            // Skips generating debug info that the linker would strip anyway.
            .args(["-gcflags=all=-dwarf=false", "-ldflags"])
            .arg(format!("-s -w {}", self.linker_flags))
            .arg("-o")
            .args([&partial])
            .arg(&self.package)
            .current_dir(module_directory(self.module))
            .env("CGO_ENABLED", "0")
            .env("GOWORK", "off");
        if env::var_os("GOGC").is_none() {
            // Compiler processes are short-lived, so collecting their garbage wastes time; the
            // limit protects small machines.
            build.env("GOGC", "400").env("GOMEMLIMIT", "2GiB");
        }
        let started = Instant::now();
        follow(build, self.name, progress)?;
        fs::rename(&partial, &path).map_err(|source| ProvisionError::File { path: path.clone(), source })?;
        progress(&format!("built {} {} in {} s", self.name, self.version, started.elapsed().as_secs()));
        Ok(path)
    }

    /// The directory's name has the version for readers and a hash of all inputs for correctness.
    fn place(&self, cache: &Path) -> Result<PathBuf, ProvisionError> {
        let mut inputs = self.linker_flags.clone().into_bytes();
        for file in ["go.mod", "go.sum"] {
            let path = module_directory(self.module).join(file);
            inputs.extend(fs::read(&path).map_err(|source| ProvisionError::File { path, source })?);
        }
        let digest = Digest::of(&inputs);
        let directory = format!("{}-{}-{}", self.module, self.version, &digest.hex()[..10]);
        Ok(cache.join("bin").join(directory).join(self.name))
    }
}

/// Runs `go build -v`, which prints each package that it compiles, and reports progress now and
/// then.
fn follow(mut build: Command, name: &str, progress: Progress) -> Result<(), ProvisionError> {
    let line = describe(&build);
    let start = |source| CommandError::Start { command: line.clone(), source };
    let mut child =
        build.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::piped()).spawn().map_err(start)?;
    let mut last = String::new();
    let (mut packages, mut said) = (0_u32, Instant::now());
    if let Some(stderr) = child.stderr.take() {
        for printed in BufReader::new(stderr).lines().map_while(Result::ok) {
            packages += 1;
            if said.elapsed() > Duration::from_secs(30) {
                progress(&format!("  {name}: {packages} packages so far, now {printed}"));
                said = Instant::now();
            }
            last.push_str(&printed);
            last.push('\n');
        }
    }
    let status = child.wait().map_err(start)?;
    Ok(command::check_status(&line, status, &last)?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_unknown_version_names_the_known_ones() {
        assert_eq!("v1.33.13".parse::<KubernetesVersion>().unwrap(), KubernetesVersion::V1_33);
        let error = "1.20.0".parse::<KubernetesVersion>().unwrap_err().to_string();
        assert_eq!(error, "Kubernetes 1.20.0 is not pinned in lab/go; choose one of 1.37.0, 1.33.13");
    }

    #[test]
    fn every_program_is_pinned_by_a_committed_module() {
        for version in KubernetesVersion::ALL {
            let lab = wanted(Purpose::Lab, version);
            for program in lab.iter().chain(&wanted(Purpose::Api, version)).chain([&helm()]) {
                let module = fs::read_to_string(module_directory(program.module).join("go.mod")).unwrap();
                let tools = fs::read_to_string(module_directory(program.module).join("tools.go")).unwrap();
                assert!(
                    tools.contains(&format!("\"{}\"", program.package)),
                    "{} is not in tools.go",
                    program.name
                );
                let pinned = if program.module == "istio" { "20260827" } else { program.version };
                assert!(module.contains(pinned), "{} {} is not in go.mod", program.name, program.version);
            }
        }
    }
}
