//! The reason for what rules do to a packet, in words. The comments of the rules that applied say
//! which of several reasons it was.

use isp_dataplane::model::{Node as NodeModel, Service as ServiceModel, TrafficPolicy, View};
use isp_dataplane::nft::Family;
use isp_dataplane::trace::Story;
use isp_plan::Key;

use super::{Arrived, End, From};
use crate::cluster::Service;
use crate::path::Actor;

/// The comments of rules.
pub(super) const OTHER_PORT: &str = "a port that the Service does not have";
const CLUSTER_POLICY: &str = "externalTrafficPolicy Cluster";
const POD_OF_NODE: &str = "a pod of this node";
const NODE_ITSELF: &str = "this node itself";
const MASQUERADE_ALL: &str = "masqueradeAll";
const NOT_OF_NODE: &str = "not a pod of this node";
const HAIRPIN: &str = "an endpoint reaches itself";

/// The kind of a frontend that is neither a ClusterIP nor a NodePort.
const EXTERNAL_IP: &str = "external IP";

/// The facts that a reason names.
pub(super) struct Facts<'a> {
    pub(super) actor: Actor,
    pub(super) packet: &'a Arrived,
    node: &'a NodeModel,
    pub(super) frontend: Option<Frontend>,
}

/// The address of a Service that a packet is for.
pub(super) struct Frontend {
    service: Key,
    kind: &'static str,
    pub(super) is_external: bool,
    pub(super) policy: TrafficPolicy,
    ranges: Vec<String>,
    /// Why the node serves what it is not meant to serve.
    note: Option<String>,
}

impl Frontend {
    /// Whether it is an address of a load balancer or an external IP.
    pub(super) fn is_external_ip(&self) -> bool {
        self.kind == EXTERNAL_IP
    }
}

impl<'a> Facts<'a> {
    pub(super) fn new(actor: Actor, packet: &'a Arrived, node: &'a NodeModel) -> Self {
        Self { actor, packet, node, frontend: None }
    }

    /// Takes a Service into account that the node sees. The oldest one with the address counts.
    pub(super) fn consider(
        &mut self,
        key: &Key,
        service: &Service,
        model: &ServiceModel,
        view: View,
        note: Option<String>,
    ) {
        let address = self.packet.destination.ip();
        let (kind, is_external) = if view == View::Hidden {
            return;
        } else if model.cluster_ips.contains(&address) {
            ("ClusterIP", false)
        } else if view == View::Full && service.external_addresses().any(|own| own == address) {
            (EXTERNAL_IP, true)
        } else if self.node.accepting(Family::of(address)).contains(&address) {
            ("NodePort", true)
        } else {
            return;
        };
        let port = self.packet.destination.port();
        let has_port = model.ports.iter().any(|each| {
            each.protocol == self.packet.protocol
                && (if kind == "NodePort" { each.node_port == Some(port) } else { each.port == port })
        });
        if self.frontend.is_some() && !has_port {
            return;
        }
        self.frontend = Some(Frontend {
            service: key.clone(),
            kind,
            is_external,
            policy: if is_external { model.external_policy } else { model.internal_policy },
            ranges: model.source_ranges.iter().map(ToString::to_string).collect(),
            note: note.filter(|_| view == View::Full),
        });
    }

    /// The reason for an end.
    pub(super) fn reason(&self, story: &Story, comments: &[&str], end: End) -> String {
        let Some(frontend) = &self.frontend else { return "a rule of the node".to_owned() };
        let Frontend { service, kind, .. } = frontend;
        let field = if frontend.is_external { "externalTrafficPolicy" } else { "internalTrafficPolicy" };
        match end {
            End::Redirected { to, masqueraded } => {
                let among = match story.choices {
                    0 | 1 => String::new(),
                    choices => format!(", one of {choices}"),
                };
                let head = format!("{kind} of Service {service}: redirected to the endpoint {to}{among}");
                let note = frontend.note.as_ref().map(|note| format!(" ({note})")).unwrap_or_default();
                format!("{head}{note}; {}", self.about_source(frontend, comments, masqueraded))
            }
            End::Refused if comments.contains(&OTHER_PORT) => {
                format!("{kind} of Service {service}: the Service does not have this port")
            }
            End::Refused => format!("{kind} of Service {service}: the Service has no ready endpoint"),
            End::Dropped if story.steps.last().is_some_and(|step| step.chain.as_str() == "guard") => format!(
                "{kind} of Service {service}: {} is not in loadBalancerSourceRanges ({})",
                self.packet.source.address,
                frontend.ranges.join(", ")
            ),
            End::Dropped => format!(
                "{kind} of Service {service}: {field} is Local, and node {} has no ready endpoint",
                self.node.name
            ),
            End::Unclear => String::new(),
        }
    }

    fn about_source(&self, frontend: &Frontend, comments: &[&str], masqueraded: bool) -> String {
        let said = |comment: &str| comments.contains(&comment);
        let because = match (masqueraded, frontend.is_external) {
            (true, _) if said(HAIRPIN) => "an endpoint reaches itself through its Service",
            (true, true) if said(CLUSTER_POLICY) => "externalTrafficPolicy is Cluster",
            (true, true) if said(NODE_ITSELF) => "the packet comes from the node itself",
            (true, false) if said(MASQUERADE_ALL) => "masqueradeAll is on",
            (true, false) if said(NOT_OF_NODE) => "the source is not a pod of this node",
            (true, _) => "the answer has to come back through this node",
            (false, true) if said(POD_OF_NODE) => "the source is a pod of this node",
            (false, true) if frontend.policy == TrafficPolicy::Local => "externalTrafficPolicy is Local",
            (false, _) if self.packet.from == From::Pod => "the source is a pod of this node",
            (false, _) => "the packet stays on this node, or its source is not to be replaced",
        };
        if masqueraded {
            format!("the source IP becomes the node's (SNAT), because {because}")
        } else {
            format!("the source IP is kept, because {because}")
        }
    }
}
