//! The answer: hops, and how the way ends.

use std::fmt;
use std::net::SocketAddr;

use isp_plan::Key;
use serde::{Serialize, Serializer};

use crate::address::{Address, Flow};

/// One way that a packet can take.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct Path {
    /// Source and destination as the client sends it.
    pub sent: Flow,
    /// The hops, in order.
    pub hops: Vec<Hop>,
    /// How the way ends.
    pub outcome: Outcome,
}

/// Something that acts on the packet, or passes it on for a reason worth knowing.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct Hop {
    /// Where.
    pub place: Place,
    /// Whose rules.
    pub actor: Actor,
    /// What happens, and why.
    pub reason: String,
    /// The rules that applied, as `nft` prints them. Only for the agent's own table.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub rules: Vec<String>,
    /// The addresses before it.
    pub before: Flow,
    /// The addresses after it.
    pub after: Flow,
    /// Whether the API does not show this, so that the usual behaviour is assumed.
    pub assumed: bool,
}

/// Where a hop is: `outside`, `node NAME` or `pod NAMESPACE/NAME`.
#[derive(Clone, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema), schemars(with = "String"))]
pub enum Place {
    /// The network outside the cluster.
    Outside,
    /// A node.
    Node(String),
    /// A pod.
    Pod(Key),
}

/// Whose rules act.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub enum Actor {
    /// The load balancer or router in front of the cluster.
    LoadBalancer,
    /// The node's kube-proxy.
    KubeProxy,
    /// The table of the agent of mode Beside.
    Agent,
    /// The masquerading of the network plugin.
    NetworkPlugin,
    /// The node's routes.
    Routes,
    /// An Istio sidecar.
    Sidecar,
    /// An Istio gateway.
    Gateway,
    /// ztunnel, which serves pods in ambient mode.
    Ztunnel,
    /// The redirect to a pod's own proxy.
    PodRedirect,
}

/// How a way ends.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(tag = "result", rename_all = "camelCase")]
pub enum Outcome {
    /// The packet arrives.
    Delivered(Box<Delivery>),
    /// The client gets an error.
    Refused {
        /// The reason.
        reason: String,
    },
    /// The client gets no answer.
    Dropped {
        /// The reason.
        reason: String,
    },
    /// The packet leaves the cluster.
    Leaves {
        /// The source that the network outside sees.
        source: Address,
        /// The reason.
        reason: String,
    },
    /// The facts do not suffice.
    Unclear {
        /// The reason.
        reason: String,
    },
}

/// A packet that arrives at a pod or at a process on the host network.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct Delivery {
    /// The pod; none if no known pod has the address.
    #[serde(serialize_with = "name", skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "schema", schemars(with = "Option<String>"))]
    pub pod: Option<Key>,
    /// The node.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub node: Option<String>,
    /// Address and port of the endpoint.
    pub destination: SocketAddr,
    /// The source that the pod's network sees.
    pub network: Address,
    /// The source that the proxy in the pod sees, if there is one: a sidecar, a gateway, a proxy of
    /// the pod's own.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub proxy: Option<Address>,
    /// The source that the application sees. None: it depends on the pod's own proxy. Behind a
    /// gateway it is the gateway; the gateway's peer is in X-Forwarded-For.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub application: Option<Address>,
    /// Whether the pod is an Istio gateway: the application is behind it.
    pub gateway: bool,
    /// Whether the source that arrives is the client's own.
    pub kept: bool,
}

impl Delivery {
    /// The source that counts: that of the application or, at a gateway, that of the gateway.
    pub fn seen(&self) -> Option<&Address> {
        if self.gateway { self.proxy.as_ref() } else { self.application.as_ref() }
    }
}

impl Path {
    /// The hop at which the client's source IP is lost, if the packet arrives without it.
    pub fn loss(&self) -> Option<&Hop> {
        match &self.outcome {
            Outcome::Delivered(delivery) if !delivery.kept => {
                let changes = || self.hops.iter().filter(|hop| hop.before.source != hop.after.source);
                changes().find(|hop| hop.actor != Actor::NetworkPlugin).or_else(|| changes().next())
            }
            _ => None,
        }
    }

    /// Whether the packet arrives, and with its source IP. Traffic of the cluster itself may also
    /// arrive with an address of its own node.
    pub fn is_fine(&self) -> bool {
        match &self.outcome {
            Outcome::Delivered(delivery) => delivery.kept,
            Outcome::Leaves { .. } => true,
            _ => false,
        }
    }
}

impl fmt::Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Outside => f.write_str("outside"),
            Self::Node(node) => write!(f, "node {node}"),
            Self::Pod(pod) => write!(f, "pod {pod}"),
        }
    }
}

impl Serialize for Place {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl fmt::Display for Actor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Self::LoadBalancer => "load balancer",
            Self::KubeProxy => "kube-proxy",
            Self::Agent => "agent",
            Self::NetworkPlugin => "network plugin",
            Self::Routes => "routes",
            Self::Sidecar => "sidecar",
            Self::Gateway => "gateway",
            Self::Ztunnel => "ztunnel",
            Self::PodRedirect => "pod-redirect",
        })
    }
}

#[allow(clippy::ref_option, reason = "serde passes the field by reference")]
fn name<S: Serializer>(key: &Option<Key>, serializer: S) -> Result<S::Ok, S::Error> {
    match key {
        Some(key) => serializer.collect_str(key),
        None => serializer.serialize_none(),
    }
}
