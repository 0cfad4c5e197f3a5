//! Replaces the lab's kube-proxy with kube-proxy as distributions ship it. The manifests are in
//! `lab/kube-proxy` and follow public specifications. `@…@` marks values that depend on the lab.

use std::fmt;
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::PathBuf;
use std::time::Duration;

use k8s_openapi::api::apps::v1::DaemonSet;
use k8s_openapi::api::core::v1::Pod;
use kube::Api;
use kube::api::ListParams;

use super::{Lab, LabError, wait_until};
use crate::credentials::Credentials;
use crate::images::kube_proxy_image;
use crate::provision::KubernetesVersion;
use crate::topology::{POD_RANGE, control_plane_addresses};

const DEADLINE: Duration = Duration::from_mins(1);
const NAMESPACE: &str = "kube-system";
const NAME: &str = "kube-proxy";
const STATIC_PODS: &str = "kubernetes.io/managed-by=nodeup";
/// Label selectors that match the kube-proxy pods of all manifests.
const LABELS: [&str; 2] = ["k8s-app=kube-proxy", "component=kube-proxy"];

/// The distribution, or the kind of setup.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Shipped {
    /// kubeadm, which is also the lab's default.
    Kubeadm,
    /// kubespray.
    Kubespray,
    /// Amazon EKS.
    Eks,
    /// Azure AKS.
    Aks,
    /// kops: a static pod in reality, here a pod bound to its node.
    Kops,
    /// A kubeconfig on the node, mounted as a single file.
    HostFile,
    /// A kubeconfig on the node, in a mounted directory.
    HostDirectory,
    /// Files mounted one by one: with `subPath`, with renamed keys, and from a projected volume.
    Parts,
}

impl Shipped {
    fn text(self) -> &'static str {
        match self {
            Self::Kubeadm => include_str!("../../kube-proxy/kubeadm.yaml"),
            Self::Kubespray => include_str!("../../kube-proxy/kubespray.yaml"),
            Self::Eks => include_str!("../../kube-proxy/eks.yaml"),
            Self::Aks => include_str!("../../kube-proxy/aks.yaml"),
            Self::Kops => include_str!("../../kube-proxy/kops.yaml"),
            Self::HostFile => include_str!("../../kube-proxy/host-file.yaml"),
            Self::HostDirectory => include_str!("../../kube-proxy/host-directory.yaml"),
            Self::Parts => include_str!("../../kube-proxy/parts.yaml"),
        }
    }
}

impl fmt::Display for Shipped {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Kubeadm => "kubeadm",
            Self::Kubespray => "kubespray",
            Self::Eks => "EKS",
            Self::Aks => "AKS",
            Self::Kops => "kops",
            Self::HostFile => "host-file",
            Self::HostDirectory => "host-directory",
            Self::Parts => "parts",
        })
    }
}

impl Lab {
    /// Deletes the cluster's kube-proxy, creates this one, and waits until it runs on every node.
    /// The kernel rules stay in place meanwhile.
    pub async fn replace_kube_proxy(&self, shipped: Shipped) -> Result<(), LabError> {
        let gone = ["-n", NAMESPACE, "delete", "daemonset", NAME, "--ignore-not-found", "--cascade=orphan"];
        self.kubectl(gone).await?;
        for label in LABELS {
            // A pod that has only just started would use its whole grace period.
            self.kubectl(["-n", NAMESPACE, "delete", "pod", "-l", label, "--grace-period=1"]).await?;
        }
        let objects = self.filled_in(shipped);
        // `create` instead of `apply`: no field manager declares the fields.
        self.kubectl_with_input(["delete", "--ignore-not-found", "-f", "-"], &objects).await?;
        self.kubectl_with_input(["create", "-f", "-"], &objects).await?;
        wait_until("kube-proxy", DEADLINE, || self.missing_kube_proxies(shipped)).await
    }

    fn filled_in(&self, shipped: Shipped) -> String {
        let families = self.topology().families;
        let text = shipped
            .text()
            .replace("@SERVER@", &self.server())
            .replace("@HOST@", &control_plane_addresses(families)[0].to_string())
            .replace("@PORT@", &self.spec.api_port.to_string())
            .replace("@PODS@", &POD_RANGE.cidrs(families).join(","))
            .replace("@IMAGE@", &kube_proxy_image(KubernetesVersion::default()));
        if !text.contains("@NODE@") {
            return text;
        }
        let nodes = self.topology().nodes.iter().map(|node| text.replace("@NODE@", node.name.as_str()));
        nodes.collect::<Vec<_>>().join("\n---\n")
    }

    async fn missing_kube_proxies(&self, shipped: Shipped) -> Result<Option<String>, LabError> {
        let wanted = self.topology().nodes.len();
        let ready = if shipped == Shipped::Kops {
            let pods: Api<Pod> = Api::namespaced(self.client(), NAMESPACE);
            let pods = pods.list(&ListParams::default().labels(STATIC_PODS)).await?;
            pods.iter().filter(|pod| is_ready(pod)).count()
        } else {
            let sets: Api<DaemonSet> = Api::namespaced(self.client(), NAMESPACE);
            let ready = sets.get(NAME).await?.status.map_or(0, |status| status.number_ready);
            usize::try_from(ready).unwrap_or(0)
        };
        Ok((ready < wanted).then(|| format!("{ready} of {wanted} pods of {shipped} are ready")))
    }

    /// Writes a file under `/var/lib` of a node.
    pub fn write_to_node(&self, node: &str, path: &str, content: &str, mode: u32) -> Result<(), LabError> {
        let place = self.directory().node(node).join("lib").join(path);
        let write = || {
            place.parent().map_or(Ok(()), fs::create_dir_all)?;
            fs::write(&place, content)?;
            fs::set_permissions(&place, fs::Permissions::from_mode(mode))
        };
        write().map_err(|source| LabError::File { path: place.clone(), source })
    }

    /// The path of a kubeconfig for kube-proxy with a client certificate, as installers use that
    /// have no ServiceAccount for it.
    pub fn kube_proxy_kubeconfig(&self) -> PathBuf {
        Credentials::at(self.directory().credentials()).kubeconfig_path(NAME)
    }
}

fn is_ready(pod: &Pod) -> bool {
    let conditions = pod.status.iter().flat_map(|status| status.conditions.iter().flatten());
    conditions.into_iter().any(|condition| condition.type_ == "Ready" && condition.status == "True")
}

#[test]
fn each_manifest_is_whole_once_it_is_filled_in() {
    let directory = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("kube-proxy");
    let files = fs::read_dir(directory).unwrap().count();
    let all = [
        Shipped::Kubeadm,
        Shipped::Kubespray,
        Shipped::Eks,
        Shipped::Aks,
        Shipped::Kops,
        Shipped::HostFile,
        Shipped::HostDirectory,
        Shipped::Parts,
    ];
    assert_eq!(all.len(), files, "a manifest that nobody uses");
    for shipped in all {
        for mark in shipped.text().split('@').skip(1).step_by(2) {
            assert!(["SERVER", "HOST", "PORT", "PODS", "IMAGE", "NODE"].contains(&mark), "{shipped}: {mark}");
        }
    }
}
