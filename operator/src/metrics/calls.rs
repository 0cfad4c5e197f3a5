//! Requests to the API server by verb and kind, derived from method and URL.

use http::{Method, Request};
use prometheus_client::encoding::{EncodeLabelSet, EncodeLabelValue};

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, EncodeLabelValue)]
enum Verb {
    Get,
    List,
    Watch,
    Create,
    Update,
    Patch,
    Delete,
    Other,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, EncodeLabelValue)]
enum Kind {
    IngressSourcePreserve,
    IngressSourceNode,
    Service,
    EndpointSlice,
    Node,
    DaemonSet,
    Pod,
    ConfigMap,
    Lease,
    Event,
    Namespace,
    MutatingWebhookConfiguration,
    ValidatingWebhookConfiguration,
    MutatingAdmissionPolicy,
    MutatingAdmissionPolicyBinding,
    Other,
}

/// The labels of a request.
#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
pub(crate) struct Call {
    verb: Verb,
    kind: Kind,
}

impl Call {
    pub(crate) fn of<B>(request: &Request<B>) -> Self {
        let path = request.uri().path();
        // The kind follows the group and version, or the namespace.
        let mut segments = path.trim_matches('/').split('/');
        let of_a_group = segments.next() != Some("api");
        let mut segments = segments.skip(1 + usize::from(of_a_group)).peekable();
        let mut of_a_namespace = false;
        if segments.peek() == Some(&"namespaces") {
            segments.nth(1);
            of_a_namespace = true;
        }
        let kind = match segments.next() {
            None if of_a_namespace => Kind::Namespace,
            Some("ingresssourcepreserves") => Kind::IngressSourcePreserve,
            Some("ingresssourcenodes") => Kind::IngressSourceNode,
            Some("services") => Kind::Service,
            Some("endpointslices") => Kind::EndpointSlice,
            Some("nodes") => Kind::Node,
            Some("daemonsets") => Kind::DaemonSet,
            Some("pods") => Kind::Pod,
            Some("configmaps") => Kind::ConfigMap,
            Some("leases") => Kind::Lease,
            Some("events") => Kind::Event,
            Some("mutatingwebhookconfigurations") => Kind::MutatingWebhookConfiguration,
            Some("validatingwebhookconfigurations") => Kind::ValidatingWebhookConfiguration,
            Some("mutatingadmissionpolicies") => Kind::MutatingAdmissionPolicy,
            Some("mutatingadmissionpolicybindings") => Kind::MutatingAdmissionPolicyBinding,
            _ => Kind::Other,
        };
        let named = segments.next().is_some();
        let query = request.uri().query().unwrap_or_default();
        let watches = query.split('&').any(|pair| pair == "watch=true" || pair == "watch=1");
        let verb = match *request.method() {
            Method::GET if watches => Verb::Watch,
            Method::GET if named => Verb::Get,
            Method::GET => Verb::List,
            Method::POST => Verb::Create,
            Method::PUT => Verb::Update,
            Method::PATCH => Verb::Patch,
            Method::DELETE => Verb::Delete,
            _ => Verb::Other,
        };
        Self { verb, kind }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn call(method: Method, uri: &str) -> Call {
        Call::of(&Request::builder().method(method).uri(uri).body(()).unwrap())
    }

    #[test]
    fn a_request_says_what_is_done_to_which_kind() {
        let services = "/api/v1/services";
        assert_eq!(call(Method::GET, services), Call { verb: Verb::List, kind: Kind::Service });
        let watch = "/api/v1/services?&watch=true&timeoutSeconds=290";
        assert_eq!(call(Method::GET, watch), Call { verb: Verb::Watch, kind: Kind::Service });
        let one = "/api/v1/namespaces/shop/services/web";
        assert_eq!(call(Method::PATCH, one), Call { verb: Verb::Patch, kind: Kind::Service });
        let map = "/api/v1/namespaces/kube-system/configmaps/kube-proxy";
        assert_eq!(call(Method::GET, map), Call { verb: Verb::Get, kind: Kind::ConfigMap });
        let lease = "/apis/coordination.k8s.io/v1/namespaces/a/leases/b";
        assert_eq!(call(Method::PUT, lease), Call { verb: Verb::Update, kind: Kind::Lease });
        let status = "/apis/sourcepreserve.io/v1alpha1/ingresssourcepreserves/a/status";
        assert_eq!(
            call(Method::PATCH, status),
            Call { verb: Verb::Patch, kind: Kind::IngressSourcePreserve }
        );
        let namespace = "/api/v1/namespaces/pods";
        assert_eq!(call(Method::GET, namespace).kind, Kind::Namespace);
        let webhook = "/apis/admissionregistration.k8s.io/v1/mutatingwebhookconfigurations/a";
        assert_eq!(call(Method::PATCH, webhook).kind, Kind::MutatingWebhookConfiguration);
        assert_eq!(call(Method::GET, "/version").kind, Kind::Other);
    }
}
