//! The states of the cluster: kube-proxy's mode, and the object. Brings the cluster from one to the
//! next.

use std::collections::BTreeSet;
use std::fmt;

use isp_api::conditions::find;
use isp_lab::ProxyMode;
use isp_testkit::until;
use isp_testkit::web_lab::{OBJECT, WebLab};
use k8s_openapi::api::core::v1::ConfigMap;
use kube::Api;
use kube::api::{Patch, PatchParams};
use serde_json::json;

use crate::services::{Generated, NAMESPACE, OWNED};

/// The object that preserves Services.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Object {
    pub(crate) mode: &'static str,
    pub(crate) elsewhere: &'static str,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct State {
    pub(crate) kube_proxy: ProxyMode,
    pub(crate) object: Option<Object>,
}

const fn state(kube_proxy: ProxyMode, mode: &'static str, elsewhere: &'static str) -> State {
    State { kube_proxy, object: Some(Object { mode, elsewhere }) }
}

/// In the order in which the cluster takes them. kube-proxy changes its mode while there is no
/// object.
pub(crate) const STATES: [State; 7] = [
    State { kube_proxy: ProxyMode::Nftables, object: None },
    state(ProxyMode::Nftables, "Filter", "ClusterOnly"),
    state(ProxyMode::Nftables, "Filter", "Hidden"),
    state(ProxyMode::Nftables, "Beside", "ClusterOnly"),
    State { kube_proxy: ProxyMode::Iptables, object: None },
    state(ProxyMode::Iptables, "Filter", "Hidden"),
    state(ProxyMode::Iptables, "Beside", "Hidden"),
];

impl fmt::Display for State {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.object {
            None => write!(f, "{}, no object", self.kube_proxy),
            Some(Object { mode, elsewhere }) => write!(f, "{}, {mode}, {elsewhere}", self.kube_proxy),
        }
    }
}

impl State {
    /// Takes the cluster from the state before to this one. The Services exist already.
    pub(crate) async fn enter(self, web: &WebLab, before: Option<Self>, services: &[Generated]) {
        if before.is_none() {
            web.install().await;
        }
        if self.object.is_none() && before.is_some_and(|before| before.object.is_some()) {
            web.lab.kubectl(["delete", "isp", OBJECT, "--timeout=180s"]).await.unwrap();
        }
        if before.is_some_and(|before| before.kube_proxy != self.kube_proxy) {
            change_mode(web, self.kube_proxy).await;
        }
        if let Some(object) = self.object {
            apply(web, object).await;
            wait_until_preserved(web, object, services).await;
        }
    }
}

async fn apply(web: &WebLab, object: Object) {
    let object = json!({
        "apiVersion": "sourcepreserve.io/v1alpha1", "kind": "IngressSourcePreserve",
        "metadata": {"name": OBJECT},
        "spec": {
            "mode": object.mode,
            "elsewhere": object.elsewhere,
            "ingressNodes": {"selector": {"matchLabels": {"node-role.kubernetes.io/ingress": ""}}},
            "services": [{"namespace": NAMESPACE, "selector": {"matchLabels": {OWNED.0: OWNED.1}}}],
            "rollout": {"maxUnavailable": 2},
        },
    });
    web.lab.apply(&object.to_string()).await.unwrap();
}

/// Waits until the object is ready with exactly the Services that it is to preserve.
async fn wait_until_preserved(web: &WebLab, object: Object, services: &[Generated]) {
    let owned: BTreeSet<&str> =
        services.iter().filter(|each| each.owned).map(|each| each.name.as_str()).collect();
    until(&format!("{object:?} is ready with {owned:?}"), async || {
        let found = web.objects().get(OBJECT).await.unwrap();
        let status = found.status.unwrap_or_default();
        let ready = find(&status.conditions, "Ready").cloned();
        let names: BTreeSet<&str> = status.services.iter().map(|each| each.name.as_str()).collect();
        let is_ready = ready.as_ref().is_some_and(|ready| ready.status == "True");
        if is_ready && names == owned && status.observed_generation == found.metadata.generation {
            Ok(())
        } else {
            Err((names.len(), ready.map(|ready| ready.message)))
        }
    })
    .await;
}

/// Changes the mode as an administrator does: in the ConfigMap, with a restart.
async fn change_mode(web: &WebLab, mode: ProxyMode) {
    let maps: Api<ConfigMap> = Api::namespaced(web.lab.client(), "kube-system");
    let data = maps.get("kube-proxy").await.unwrap().data.unwrap();
    let (one, other) = (format!("mode: {}", ProxyMode::Nftables), format!("mode: {mode}"));
    let changed = data["config.conf"].replace(&one, &other);
    assert!(changed.contains(&other), "{changed}");
    let patch = Patch::Merge(json!({"data": {"config.conf": changed}}));
    maps.patch("kube-proxy", &PatchParams::default(), &patch).await.unwrap();
    let set = "daemonset/kube-proxy";
    web.lab.kubectl(["-n", "kube-system", "rollout", "restart", set]).await.unwrap();
    web.lab.kubectl(["-n", "kube-system", "rollout", "status", set, "--timeout=180s"]).await.unwrap();
}
