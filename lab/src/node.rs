//! A node's files and programs: containerd, the CNI plugin and the kubelet. Pure: paths in, text
//! out. Each node has its own `/run`, `/var/lib` and `/var/log`, so all nodes use the same standard
//! paths.

use std::path::Path;

use serde_json::{Value, json};

use crate::addons::kube_proxy::configuration;
use crate::components::Component;
use crate::credentials::Credentials;
use crate::lab::ProxyMode;
use crate::provision::{Programs, ProvisionError};
use crate::topology::{Families, Node, Topology, dns_addresses};

/// The image of pod sandboxes.
pub(crate) const PAUSE_IMAGE: &str = "lab.local/pause:1";
/// The path of containerd's socket, inside the node's mount namespace.
pub(crate) const CONTAINERD_SOCKET: &str = "/run/containerd/containerd.sock";
/// The cluster's DNS domain.
pub(crate) const CLUSTER_DOMAIN: &str = "cluster.local";

/// The control group above those of all labs.
pub(crate) const ALL_LABS: &str = "isp-lab";

/// The control group above those of a node's pods.
pub(crate) fn cgroup_parent(lab: &str, node: &str) -> String {
    format!("/{ALL_LABS}/{lab}/{node}")
}

/// The files to write before a node starts, as (name in the node's directory, content).
pub(crate) fn files(
    lab: &str,
    topology: &Topology,
    node: &Node,
    programs: &Programs,
    credentials: &Credentials,
    directory: &Path,
) -> Result<Vec<(&'static str, String)>, ProvisionError> {
    let plugins = programs.cni_directory()?.display().to_string();
    Ok(vec![
        ("containerd.toml", containerd(&plugins, directory)),
        ("cni/10-lab.conflist", format!("{:#}\n", network_plugin(topology, node))),
        ("kubelet.json", format!("{:#}\n", kubelet(lab, topology, node, credentials, directory))),
        // Names outside the cluster do not resolve: the lab has no upstream DNS.
        ("resolv.conf", "search .\n".to_owned()),
    ])
}

/// The node's containerd and kubelet.
pub(crate) fn components(
    topology: &Topology,
    node: &Node,
    programs: &Programs,
    credentials: &Credentials,
    directory: &Path,
) -> Result<Vec<Component>, ProvisionError> {
    let component = |name: &str, arguments: Vec<String>| {
        Ok::<_, ProvisionError>(Component {
            name: format!("{}/{name}", node.name),
            node: Some(node.name.to_string()),
            program: programs.path(name)?.to_owned(),
            arguments,
            after_api: false,
        })
    };
    let addresses: Vec<String> = node.addresses(topology.families).iter().map(ToString::to_string).collect();
    Ok(vec![
        component(
            "containerd",
            vec!["--config".to_owned(), directory.join("containerd.toml").display().to_string()],
        )?,
        component(
            "kubelet",
            vec![
                format!("--config={}", directory.join("kubelet.json").display()),
                format!("--kubeconfig={}", credentials.kubeconfig_path(node.name.as_str()).display()),
                format!("--hostname-override={}", node.name),
                format!("--node-ip={}", addresses.join(",")),
                "--v=1".to_owned(),
            ],
        )?,
    ])
}

/// kube-proxy as a process of the node: its configuration file, and the component.
pub(crate) fn kube_proxy(
    families: Families,
    node: &Node,
    mode: ProxyMode,
    programs: &Programs,
    credentials: &Credentials,
    directory: &Path,
) -> Result<((&'static str, String), Component), ProvisionError> {
    let file = "kube-proxy.conf";
    let kubeconfig = credentials.kubeconfig_path("kube-proxy").display().to_string();
    let component = Component {
        name: format!("{}/kube-proxy", node.name),
        node: Some(node.name.to_string()),
        program: programs.path("kube-proxy")?.to_owned(),
        arguments: vec![
            format!("--config={}", directory.join(file).display()),
            format!("--hostname-override={}", node.name),
        ],
        after_api: true,
    };
    Ok(((file, configuration(families, mode, &kubeconfig)), component))
}

/// containerd's configuration: only what kubelets need, and nothing that writes outside the node's
/// directories.
fn containerd(plugins: &str, directory: &Path) -> String {
    format!(
        r#"version = 3
root = "/var/lib/containerd"
state = "/run/containerd"
disabled_plugins = ["io.containerd.nri.v1.nri", "io.containerd.snapshotter.v1.btrfs", "io.containerd.snapshotter.v1.zfs", "io.containerd.snapshotter.v1.devmapper", "io.containerd.snapshotter.v1.blockfile", "io.containerd.snapshotter.v1.erofs"]

[grpc]
address = "{CONTAINERD_SOCKET}"

[plugins."io.containerd.internal.v1.opt"]
path = "/var/lib/containerd/opt"

[plugins."io.containerd.cri.v1.images".pinned_images]
sandbox = "{PAUSE_IMAGE}"

[plugins."io.containerd.cri.v1.runtime"]
disable_apparmor = true
restrict_oom_score_adj = true

[plugins."io.containerd.cri.v1.runtime".cni]
bin_dirs = ["{plugins}"]
conf_dir = "{directory}/cni"

[plugins."io.containerd.cri.v1.runtime".containerd]
default_runtime_name = "runc"

[plugins."io.containerd.cri.v1.runtime".containerd.runtimes.runc]
runtime_type = "io.containerd.runc.v2"

[plugins."io.containerd.cri.v1.runtime".containerd.runtimes.runc.options]
SystemdCgroup = false
"#,
        directory = directory.display()
    )
}

/// The CNI bridge plugin. It does not masquerade, because it would also do so between pods; the
/// lab's own rules do it.
fn network_plugin(topology: &Topology, node: &Node) -> Value {
    let ranges: Vec<Value> =
        node.pods().cidrs(topology.families).into_iter().map(|subnet| json!([{"subnet": subnet}])).collect();
    json!({
        "cniVersion": "1.0.0",
        "name": "lab",
        "plugins": [{
            "type": "bridge",
            "bridge": "cni0",
            "isDefaultGateway": true,
            "hairpinMode": true,
            "ipMasq": false,
            "ipam": {"type": "host-local", "ranges": ranges},
        }],
    })
}

fn kubelet(
    lab: &str,
    topology: &Topology,
    node: &Node,
    credentials: &Credentials,
    directory: &Path,
) -> Value {
    json!({
        "apiVersion": "kubelet.config.k8s.io/v1beta1",
        "kind": "KubeletConfiguration",
        "authentication": {
            "anonymous": {"enabled": false},
            "webhook": {"enabled": true},
            "x509": {"clientCAFile": credentials.file("ca.crt")},
        },
        "authorization": {"mode": "Webhook"},
        "tlsCertFile": credentials.file(&format!("kubelet-{}.crt", node.name)),
        "tlsPrivateKeyFile": credentials.file(&format!("kubelet-{}.key", node.name)),
        "clusterDNS": dns_addresses(topology.families).iter().map(ToString::to_string).take(1).collect::<Vec<_>>(),
        "clusterDomain": CLUSTER_DOMAIN,
        "resolvConf": directory.join("resolv.conf"),
        "containerRuntimeEndpoint": format!("unix://{CONTAINERD_SOCKET}"),
        "cgroupDriver": "cgroupfs",
        "cgroupRoot": cgroup_parent(lab, node.name.as_str()),
        // All nodes share this machine, so none may reserve resources or evict pods by its usage.
        "enforceNodeAllocatable": [],
        "failCgroupV1": false,
        "failSwapOn": false,
        "localStorageCapacityIsolation": false,
        "evictionHard": {"memory.available": "1Mi", "nodefs.available": "1Mi", "imagefs.available": "1Mi"},
        "imageGCHighThresholdPercent": 100,
        "imageGCLowThresholdPercent": 99,
        "maxPods": 200,
        "readOnlyPort": 0,
        "volumePluginDir": "/var/lib/kubelet/volume-plugins",
        // All images are present; nothing is pulled.
        "serializeImagePulls": false,
        // Report readiness early: a lab is up when its nodes are ready.
        "nodeStatusUpdateFrequency": "5s",
        "syncFrequency": "20s",
        "logging": {"flushFrequency": "1s"},
    })
}
