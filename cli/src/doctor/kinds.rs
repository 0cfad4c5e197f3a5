//! The kinds that doctor reads, as the API server and the files of a dump name them.

use kube::core::{ApiResource, GroupVersionKind};

/// A kind that doctor reads.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Kind {
    IngressSourcePreserve,
    IngressSourceNode,
    Service,
    EndpointSlice,
    Node,
    Namespace,
    Pod,
    ConfigMap,
    DaemonSet,
    Deployment,
    MutatingWebhookConfiguration,
    ValidatingWebhookConfiguration,
    NetworkPolicy,
    Ingress,
    AuthorizationPolicy,
    EnvoyFilter,
    /// Istio's own.
    IstioGateway,
    VirtualService,
    /// The Gateway API's.
    Gateway,
    HttpRoute,
    GrpcRoute,
    TlsRoute,
    TcpRoute,
}

/// How a kind is found.
struct Names {
    group: &'static str,
    /// The newest first.
    versions: &'static [&'static str],
    kind: &'static str,
    plural: &'static str,
}

const ISTIO_POLICY: &[&str] = &["v1", "v1beta1"];
const ISTIO_NETWORKING: &[&str] = &["v1", "v1beta1", "v1alpha3"];
const GATEWAY_API: &[&str] = &["v1", "v1beta1", "v1alpha2"];

impl Kind {
    pub(crate) const ALL: [Self; 23] = [
        Self::IngressSourcePreserve,
        Self::IngressSourceNode,
        Self::Service,
        Self::EndpointSlice,
        Self::Node,
        Self::Namespace,
        Self::Pod,
        Self::ConfigMap,
        Self::DaemonSet,
        Self::Deployment,
        Self::MutatingWebhookConfiguration,
        Self::ValidatingWebhookConfiguration,
        Self::NetworkPolicy,
        Self::Ingress,
        Self::AuthorizationPolicy,
        Self::EnvoyFilter,
        Self::IstioGateway,
        Self::VirtualService,
        Self::Gateway,
        Self::HttpRoute,
        Self::GrpcRoute,
        Self::TlsRoute,
        Self::TcpRoute,
    ];

    fn names(self) -> Names {
        const V1: &[&str] = &["v1"];
        let (group, versions, kind, plural) = match self {
            Self::IngressSourcePreserve => {
                ("sourcepreserve.io", &["v1alpha1"][..], "IngressSourcePreserve", "ingresssourcepreserves")
            }
            Self::IngressSourceNode => {
                ("sourcepreserve.io", &["v1alpha1"][..], "IngressSourceNode", "ingresssourcenodes")
            }
            Self::Service => ("", V1, "Service", "services"),
            Self::EndpointSlice => ("discovery.k8s.io", V1, "EndpointSlice", "endpointslices"),
            Self::Node => ("", V1, "Node", "nodes"),
            Self::Namespace => ("", V1, "Namespace", "namespaces"),
            Self::Pod => ("", V1, "Pod", "pods"),
            Self::ConfigMap => ("", V1, "ConfigMap", "configmaps"),
            Self::DaemonSet => ("apps", V1, "DaemonSet", "daemonsets"),
            Self::Deployment => ("apps", V1, "Deployment", "deployments"),
            Self::MutatingWebhookConfiguration => (
                "admissionregistration.k8s.io",
                V1,
                "MutatingWebhookConfiguration",
                "mutatingwebhookconfigurations",
            ),
            Self::ValidatingWebhookConfiguration => (
                "admissionregistration.k8s.io",
                V1,
                "ValidatingWebhookConfiguration",
                "validatingwebhookconfigurations",
            ),
            Self::NetworkPolicy => ("networking.k8s.io", V1, "NetworkPolicy", "networkpolicies"),
            Self::Ingress => ("networking.k8s.io", V1, "Ingress", "ingresses"),
            Self::AuthorizationPolicy => {
                ("security.istio.io", ISTIO_POLICY, "AuthorizationPolicy", "authorizationpolicies")
            }
            Self::EnvoyFilter => ("networking.istio.io", &["v1alpha3"][..], "EnvoyFilter", "envoyfilters"),
            Self::IstioGateway => ("networking.istio.io", ISTIO_NETWORKING, "Gateway", "gateways"),
            Self::VirtualService => {
                ("networking.istio.io", ISTIO_NETWORKING, "VirtualService", "virtualservices")
            }
            Self::Gateway => ("gateway.networking.k8s.io", GATEWAY_API, "Gateway", "gateways"),
            Self::HttpRoute => ("gateway.networking.k8s.io", GATEWAY_API, "HTTPRoute", "httproutes"),
            Self::GrpcRoute => ("gateway.networking.k8s.io", GATEWAY_API, "GRPCRoute", "grpcroutes"),
            Self::TlsRoute => ("gateway.networking.k8s.io", GATEWAY_API, "TLSRoute", "tlsroutes"),
            Self::TcpRoute => ("gateway.networking.k8s.io", GATEWAY_API, "TCPRoute", "tcproutes"),
        };
        Names { group, versions, kind, plural }
    }

    /// The kind of a document, if doctor reads it.
    pub(crate) fn of(api_version: &str, kind: &str) -> Option<Self> {
        let (group, version) = api_version.rsplit_once('/').unwrap_or(("", api_version));
        Self::ALL.into_iter().find(|known| {
            let names = known.names();
            names.group == group && names.kind == kind && names.versions.contains(&version)
        })
    }

    /// The API resources, one for each version.
    pub(crate) fn resources(self) -> impl Iterator<Item = ApiResource> {
        let Names { group, versions, kind, plural } = self.names();
        let resource = move |version: &&str| {
            ApiResource::from_gvk_with_plural(&GroupVersionKind::gvk(group, version, kind), plural)
        };
        versions.iter().map(resource)
    }

    pub(crate) fn as_str(self) -> &'static str {
        self.names().kind
    }

    /// As in RBAC rules: `services`, `daemonsets.apps`.
    pub(crate) fn resource(self) -> String {
        let Names { group, plural, .. } = self.names();
        if group.is_empty() { plural.to_owned() } else { format!("{plural}.{group}") }
    }

    /// Whether another project defines it.
    pub(crate) fn is_foreign(self) -> bool {
        matches!(
            self,
            Self::AuthorizationPolicy
                | Self::EnvoyFilter
                | Self::IstioGateway
                | Self::VirtualService
                | Self::Gateway
                | Self::HttpRoute
                | Self::GrpcRoute
                | Self::TlsRoute
                | Self::TcpRoute
        )
    }

    /// Whether every cluster has objects of it, so that a dump without any is incomplete.
    pub(crate) fn is_everywhere(self) -> bool {
        !self.is_foreign()
            && !matches!(
                self,
                Self::IngressSourcePreserve
                    | Self::IngressSourceNode
                    | Self::MutatingWebhookConfiguration
                    | Self::ValidatingWebhookConfiguration
                    | Self::NetworkPolicy
                    | Self::Ingress
            )
    }

    /// Whether policies cannot be judged without it.
    pub(crate) fn is_essential(self) -> bool {
        matches!(self, Self::Service | Self::Pod | Self::AuthorizationPolicy)
    }
}
