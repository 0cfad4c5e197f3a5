//! The differences between the modes: which nodes need an agent, what the agents of a pool are made
//! from, and the words for them. A pool has agents of mode Filter; `beside` has those of mode
//! Beside.

use isp_api::names::KUBE_PROXY_ANNOTATION;
use isp_api::node::AgentMode;
use isp_api::preserve::{KubeProxyRef, Mode};
use k8s_openapi::api::apps::v1::DaemonSet as DaemonSetObject;

use super::super::kube_proxy::{self, Problem, is_fought, is_kept_off};
use super::super::snapshot::{Object, Snapshot};
use crate::cluster::{Cluster, DaemonSet, Key};
use crate::observe::kube_proxy as find_kube_proxy;

/// Whether an object with this mode needs an agent on a node.
pub(in crate::plan) fn needs_agent(mode: Mode, is_ingress: bool, left_out: bool) -> bool {
    match mode {
        // On each non-ingress node that runs kube-proxy, which could intercept the Services.
        Mode::Filter => !is_ingress && !left_out,
        // On each node that can have one: no kube-proxy serves the Services any more.
        Mode::Beside => !left_out,
    }
}

/// Whether an object with this mode needs an agent of a pool on a node. While it leaves mode
/// Filter, it keeps those that there are.
pub(in crate::plan) fn needs_pool(mode: Mode, needs_agent: bool, keeps_filter: bool, has_pool: bool) -> bool {
    match mode {
        Mode::Filter => needs_agent,
        Mode::Beside => keeps_filter && has_pool,
    }
}

/// The mode that the object's agents report.
pub(super) fn agent_mode(mode: Mode) -> AgentMode {
    match mode {
        Mode::Filter => AgentMode::Filter,
        Mode::Beside => AgentMode::Beside,
    }
}

/// The nodes that need an agent, in words.
pub(in crate::plan) fn whose(mode: Mode) -> &'static str {
    match mode {
        Mode::Filter => "non-ingress nodes",
        Mode::Beside => "nodes",
    }
}

/// The wanted origin, as the pool's object or a retained DaemonSet describes it.
pub(in crate::plan) struct Source {
    pub(in crate::plan) kube_proxy: Option<KubeProxyRef>,
    /// The index of the object. None if no object needs the pool any more.
    pub(in crate::plan) object: Option<usize>,
    /// The object's name, recorded if the pool is retained.
    pub(in crate::plan) name: String,
}

/// What the agents of a pool are made from.
pub(in crate::plan) enum Origin<'a> {
    /// Mode Filter: the cluster's kube-proxy, which must not run on the pool's nodes.
    KubeProxy(&'a Key, &'a DaemonSet),
}

impl<'a> Origin<'a> {
    pub(in crate::plan) fn find(cluster: &'a Cluster, source: &Source) -> Result<Self, Problem> {
        let (key, set) = find_kube_proxy(&cluster.daemon_sets, source.kube_proxy.as_ref())?;
        Ok(Self::KubeProxy(key, set))
    }

    /// The namespace of the agents.
    pub(in crate::plan) fn namespace(&self) -> &'a str {
        match self {
            Self::KubeProxy(key, _) => &key.namespace,
        }
    }

    /// The kube-proxy that must not run on the pool's nodes.
    #[allow(clippy::unnecessary_wraps, reason = "not every mode displaces kube-proxy")]
    pub(in crate::plan) fn displaced(&self) -> Option<(&'a Key, &'a DaemonSet)> {
        match self {
            Self::KubeProxy(key, set) => Some((key, set)),
        }
    }

    /// Whether nodes may be handed over: no kube-proxy comes to nodes with an agent.
    pub(in crate::plan) fn is_ready(&self) -> bool {
        self.displaced().is_none_or(|(_, set)| is_kept_off(set))
    }

    /// Why the pool's nodes must be handed back: another manager keeps bringing kube-proxy back.
    pub(in crate::plan) fn contest(&self, snapshot: &Snapshot<'_>, object: &Object<'_>) -> Option<Problem> {
        let (key, set) = self.displaced().filter(|(key, set)| is_fought(snapshot, object, key, set))?;
        let who = set.last_writer.as_ref().map_or_else(|| "nobody".to_owned(), |who| format!("{who:?}"));
        Some(Problem::NotKeptOff { set: key.clone(), who })
    }

    /// The agents' DaemonSet, without a revision.
    pub(in crate::plan) fn daemon_set(
        &self,
        snapshot: &Snapshot<'_>,
        pool: &str,
    ) -> Result<DaemonSetObject, Problem> {
        match self {
            Self::KubeProxy(key, set) => {
                let image = &snapshot.settings.agent_image;
                kube_proxy::agents(&snapshot.cluster.configurations, key, set, image, pool)
            }
        }
    }

    /// The annotations by which a retained DaemonSet remembers its origin.
    pub(in crate::plan) fn record(&self) -> impl Iterator<Item = (String, String)> {
        let Self::KubeProxy(key, _) = self;
        [(KUBE_PROXY_ANNOTATION.to_owned(), key.name.clone())].into_iter()
    }
}

/// The origin that a retained DaemonSet remembers.
pub(in crate::plan) fn remembered(set: Option<&DaemonSet>) -> Option<KubeProxyRef> {
    let metadata = set.map(|set| &set.object.metadata);
    let name = metadata.and_then(|metadata| metadata.annotations.as_ref()?.get(KUBE_PROXY_ANNOTATION));
    let namespace = metadata.and_then(|metadata| metadata.namespace.clone());
    let kube_proxy = name.cloned().zip(namespace);
    kube_proxy.map(|(daemon_set, namespace)| KubeProxyRef { namespace, daemon_set })
}
