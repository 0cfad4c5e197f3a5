//! Generated Services as objects of the API. Pure.

use std::net::Ipv4Addr;

use serde_json::{Value, json};

use crate::pods::PodRef;
use crate::services::{Condition, Exposure, Generated, OWNED, PORT, Protocol};

impl Generated {
    /// The Service.
    pub(crate) fn service(&self) -> Value {
        let mut service = json!({
            "metadata": {"name": self.name, "labels": {OWNED.0: if self.owned { OWNED.1 } else { "not" }}},
            "spec": {
                "type": self.exposure.service_type(),
                "ports": [{"port": PORT, "targetPort": self.protocol.of_pods(), "protocol": self.protocol.name()}],
                "sessionAffinity": if self.sticky { "ClientIP" } else { "None" },
                "internalTrafficPolicy": format!("{:?}", self.internal),
            },
        });
        let spec = &mut service["spec"];
        if self.exposure != Exposure::ClusterIp {
            spec["externalTrafficPolicy"] = format!("{:?}", self.external).into();
        }
        if !self.external_ips.is_empty() {
            spec["externalIPs"] = json!(self.external_ips);
        }
        if !self.ranges.is_empty() {
            spec["loadBalancerSourceRanges"] = json!(self.ranges);
        }
        service
    }

    /// The status that a load balancer writes.
    pub(crate) fn status(&self) -> Option<Value> {
        let mode = if self.exposure == Exposure::ProxyingLoadBalancer { "Proxy" } else { "VIP" };
        let ingress = |ip| json!({"status": {"loadBalancer": {"ingress": [{"ip": ip, "ipMode": mode}]}}});
        self.balanced.map(ingress)
    }

    /// Its EndpointSlice, with the addresses of the pods.
    pub(crate) fn slice(&self, address: impl Fn(PodRef) -> Ipv4Addr) -> Value {
        let endpoint = |(pod, condition): &(PodRef, Condition)| {
            json!({
                "addresses": [address(*pod)],
                "nodeName": pod.node,
                "conditions": {
                    "ready": *condition == Condition::Ready,
                    "serving": *condition != Condition::NotReady,
                    "terminating": *condition == Condition::Terminating,
                },
            })
        };
        json!({
            "metadata": {"name": self.name, "labels": {
                "kubernetes.io/service-name": self.name,
                "endpointslice.kubernetes.io/managed-by": "traced.example",
            }},
            "addressType": "IPv4",
            "ports": [{"port": self.protocol.of_pods(), "protocol": self.protocol.name()}],
            "endpoints": self.endpoints.iter().map(endpoint).collect::<Vec<_>>(),
        })
    }
}

impl Exposure {
    fn service_type(self) -> &'static str {
        match self {
            Self::ClusterIp | Self::ExternalIps => "ClusterIP",
            Self::NodePort | Self::NodePortWithExternalIps => "NodePort",
            _ => "LoadBalancer",
        }
    }
}

impl Protocol {
    fn name(self) -> &'static str {
        match self {
            Self::Tcp => "TCP",
            Self::Udp => "UDP",
        }
    }
}
