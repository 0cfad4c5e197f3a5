//! The settings of kube-proxy, from kubeadm's ConfigMap.

use isp_paths::{DetectLocal, KubeProxy, ProxyMode};
use k8s_openapi::api::core::v1::ConfigMap;
use kube::Api;
use serde::Deserialize;

use crate::connection::Connection;

const NAMESPACE: &str = "kube-system";
const NAME: &str = "kube-proxy";
const FILE: &str = "config.conf";

/// None if they cannot be read, for whatever reason.
pub(super) async fn read(connection: &Connection) -> Option<KubeProxy> {
    let maps: Api<ConfigMap> = Api::namespaced(connection.client.clone(), NAMESPACE);
    let map = maps.get_opt(NAME).await.ok().flatten()?;
    parse(map.data?.get(FILE)?)
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase", default)]
#[derive(Default)]
struct Written {
    mode: Option<String>,
    #[serde(rename = "clusterCIDR")]
    cluster_cidr: Option<String>,
    detect_local_mode: Option<String>,
    detect_local: Option<Detect>,
    iptables: Option<Masquerade>,
    nftables: Option<Masquerade>,
    node_port_addresses: Option<Vec<String>>,
}

#[derive(Deserialize, Default)]
#[serde(rename_all = "camelCase", default)]
struct Detect {
    bridge_interface: String,
    interface_name_prefix: String,
}

#[derive(Deserialize, Default)]
#[serde(rename_all = "camelCase", default)]
struct Masquerade {
    masquerade_all: bool,
}

fn parse(text: &str) -> Option<KubeProxy> {
    let written: Written = serde_yaml::from_str(text).ok()?;
    let mode = ProxyMode::parse(written.mode.as_deref().unwrap_or_default())?;
    let masquerade = if mode == ProxyMode::Nftables { written.nftables } else { written.iptables };
    let detect = written.detect_local.unwrap_or_default();
    let detect_local = match written.detect_local_mode.as_deref().unwrap_or_default() {
        "" | "ClusterCIDR" => DetectLocal::ClusterCidr,
        "NodeCIDR" => DetectLocal::NodeCidr,
        "BridgeInterface" => DetectLocal::Bridge(detect.bridge_interface),
        "InterfaceNamePrefix" => DetectLocal::InterfacePrefix(detect.interface_name_prefix),
        _ => return None,
    };
    let cidrs = written.cluster_cidr.unwrap_or_default();
    Some(KubeProxy {
        mode,
        detect_local,
        cluster_cidrs: cidrs.split(',').filter_map(|cidr| cidr.trim().parse().ok()).collect(),
        masquerade_all: masquerade.is_some_and(|masquerade| masquerade.masquerade_all),
        node_port_addresses: written.node_port_addresses.unwrap_or_default(),
    })
}

#[test]
fn kubeadms_configuration_is_understood() {
    let read = parse(
        "mode: nftables\nclusterCIDR: 10.244.0.0/16,fd00::/64\nnftables: {masqueradeAll: true}\niptables: null\n",
    );
    let read = read.unwrap();
    assert_eq!((read.mode, read.masquerade_all), (ProxyMode::Nftables, true));
    assert_eq!(read.cluster_cidrs.len(), 2);
    assert_eq!(parse("mode: userspace"), None);
    assert_eq!(parse("{}"), Some(KubeProxy::default()));
}
