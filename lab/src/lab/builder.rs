//! The description of a lab.

use std::fmt;

use super::{Lab, LabError, up};
use crate::provision::{KubernetesVersion, Progress};
use crate::topology::{Families, KubeProxyOn, NodeName, Topology, TopologyError};

/// kube-proxy's mode.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, clap::ValueEnum)]
pub enum ProxyMode {
    /// nftables.
    #[default]
    Nftables,
    /// iptables, with the KUBE-* chains.
    Iptables,
}

impl fmt::Display for ProxyMode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Nftables => "nftables",
            Self::Iptables => "iptables",
        })
    }
}

/// Describes a lab and starts it.
#[derive(Debug, Clone)]
pub struct Builder {
    pub(super) name: String,
    pub(super) nodes: Vec<String>,
    pub(super) ingress: Option<Vec<String>>,
    pub(super) proxy_mode: ProxyMode,
    pub(super) kube_proxy: Vec<KubeProxyOn>,
    pub(super) kubernetes: KubernetesVersion,
    pub(super) istio: bool,
    pub(super) families: Families,
    pub(super) host_port: u16,
    pub(super) progress: Progress,
}

impl Default for Builder {
    fn default() -> Self {
        Self {
            name: "default".to_owned(),
            nodes: ["edge-1", "work-1", "work-2"].map(str::to_owned).into(),
            ingress: None,
            proxy_mode: ProxyMode::default(),
            kube_proxy: Vec::new(),
            kubernetes: KubernetesVersion::default(),
            istio: false,
            families: Families::default(),
            host_port: 0,
            progress: |_| {},
        }
    }
}

impl Builder {
    /// The lab's name. Labs with different names run side by side. Default: `default`.
    #[must_use]
    pub fn name(mut self, name: impl Into<String>) -> Self {
        self.name = name.into();
        self
    }

    /// The nodes' names. Default: `edge-1`, `work-1`, `work-2`.
    #[must_use]
    pub fn nodes<S: Into<String>>(mut self, names: impl IntoIterator<Item = S>) -> Self {
        self.nodes = names.into_iter().map(Into::into).collect();
        self
    }

    /// The names of the ingress nodes. Default: the nodes whose name starts with `edge`.
    #[must_use]
    pub fn ingress_nodes<S: Into<String>>(mut self, names: impl IntoIterator<Item = S>) -> Self {
        self.ingress = Some(names.into_iter().map(Into::into).collect());
        self
    }

    /// kube-proxy's mode. Default: nftables.
    #[must_use]
    pub fn proxy_mode(mut self, mode: ProxyMode) -> Self {
        self.proxy_mode = mode;
        self
    }

    /// Lets some nodes run kube-proxy as a process, or not at all. Default: all nodes run the pod
    /// of a DaemonSet.
    #[must_use]
    pub fn kube_proxy(mut self, others: impl IntoIterator<Item = KubeProxyOn>) -> Self {
        self.kube_proxy = others.into_iter().collect();
        self
    }

    /// The Kubernetes release. Default: the newest pinned one.
    #[must_use]
    pub fn kubernetes(mut self, version: KubernetesVersion) -> Self {
        self.kubernetes = version;
        self
    }

    /// Installs Istio, with an ingress gateway on the ingress nodes.
    #[must_use]
    pub fn istio(mut self, wanted: bool) -> Self {
        self.istio = wanted;
        self
    }

    /// The IP families. Default: IPv4.
    #[must_use]
    pub fn families(mut self, families: Families) -> Self {
        self.families = families;
        self
    }

    /// The port on the host's loopback that forwards to the API server. Default: any free port.
    #[must_use]
    pub fn api_port(mut self, port: u16) -> Self {
        self.host_port = port;
        self
    }

    /// Receives progress messages. Default: messages are discarded.
    #[must_use]
    pub fn progress(mut self, progress: Progress) -> Self {
        self.progress = progress;
        self
    }

    /// Builds missing parts, starts the cluster and waits until it is ready.
    pub async fn up(self) -> Result<Lab, LabError> {
        up::up(self).await
    }

    pub(super) fn topology(&self) -> Result<Topology, TopologyError> {
        let names =
            |list: &[String]| list.iter().cloned().map(NodeName::try_from).collect::<Result<Vec<_>, _>>();
        let ingress = self.ingress.as_deref().map(names).transpose()?;
        let topology = Topology::new(names(&self.nodes)?, ingress.as_deref(), self.families)?;
        topology.with_kube_proxy(&self.kube_proxy)
    }
}

/// Checks a lab's name, which becomes the name of a directory and of a control group.
pub(super) fn check_name(name: &str) -> Result<(), LabError> {
    let good = !name.is_empty()
        && name.len() <= 20
        && !name.starts_with('-')
        && name.chars().all(|c| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-');
    if good { Ok(()) } else { Err(LabError::Name(name.to_owned())) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_bad_lab_name_never_becomes_a_path() {
        for bad in ["", "../x", "a/b", "A", "-a", "a_b", "this-name-is-far-too-long"] {
            assert!(check_name(bad).is_err(), "{bad}");
        }
        assert!(check_name("ci-2").is_ok());
    }
}
