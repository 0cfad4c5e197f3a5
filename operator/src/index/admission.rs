//! Admission configuration; while an object asks for sidecars, all namespaces and the pods with a
//! sidecar; and while an object asks for a redirect, all pods.

use std::collections::BTreeMap;
use std::sync::Arc;

use isp_api::sidecar::Labels;
use isp_plan::cluster::{Admission, RedirectPod, SidecarPod};
use isp_plan::{Cluster, Key, observe};
use isp_runtime::readiness::Readiness;
use k8s_openapi::api::admissionregistration::v1::ValidatingWebhookConfiguration;
use k8s_openapi::api::core::v1::{Namespace, Pod};
use kube::ResourceExt;
use kube::core::PartialObjectMeta;
use kube::runtime::watcher::Event;

use super::reading::Reading;
use super::{News, pod_key};

/// An event of one of the watches.
#[allow(clippy::large_enum_variant, reason = "it is boxed as a whole")]
pub(crate) enum AdmissionUpdate {
    /// The configuration in which the webhook publishes its CA bundle.
    Published(Event<ValidatingWebhookConfiguration>),
    /// Whether the API server serves MutatingAdmissionPolicies.
    PoliciesServed(bool),
    Namespaces(Event<PartialObjectMeta<Namespace>>),
    /// Pods with a sidecar.
    Pods(Event<Pod>),
    /// All pods.
    AllPods(Event<Pod>),
}

/// The progress of each watch.
pub(super) struct Readings {
    bundles: BTreeMap<String, String>,
    published: Reading<String, String>,
    /// True until it is known whether the API server serves policies.
    unasked: bool,
    asked: Option<Asked>,
    /// Set while an object asks for a redirect.
    redirects: Option<Reading<Key, RedirectPod>>,
}

/// The watches that run while an object asks for sidecars.
struct Asked {
    namespaces: Reading<String, Arc<Labels>>,
    pods: Reading<Key, SidecarPod>,
}

impl Readings {
    pub(super) fn new(readiness: &Readiness) -> Self {
        let pending = |name| Some(readiness.register(name));
        Self {
            bundles: BTreeMap::new(),
            published: Reading::new(pending("validatingwebhookconfigurations")),
            unasked: true,
            asked: None,
            redirects: None,
        }
    }

    /// The kinds that have not been listed yet.
    pub(super) fn missing(&self) -> impl Iterator<Item = &'static str> {
        let asked = self.asked.as_ref();
        let namespaces = asked.is_none_or(|asked| asked.namespaces.is_whole());
        let pods = asked.is_none_or(|asked| asked.pods.is_whole());
        [
            ("validatingwebhookconfigurations", self.published.is_whole()),
            ("whether there are mutatingadmissionpolicies", !self.unasked),
            ("namespaces", namespaces),
            ("pods with a sidecar", pods),
            ("all pods", self.redirects.as_ref().is_none_or(Reading::is_whole)),
        ]
        .into_iter()
        .filter(|(_, whole)| !whole)
        .map(|(name, _)| name)
    }

    /// Waits for namespaces and pods to be listed.
    pub(super) fn follow(&mut self) {
        self.asked = Some(Asked { namespaces: Reading::new(None), pods: Reading::new(None) });
    }

    /// Drops namespaces and pods.
    pub(super) fn forget(&mut self, cluster: &mut Cluster) {
        self.asked = None;
        cluster.namespaces.clear();
        cluster.sidecars.clear();
    }

    /// Waits for all pods to be listed.
    pub(super) fn follow_redirects(&mut self) {
        self.redirects = Some(Reading::new(None));
    }

    /// Drops these pods.
    pub(super) fn forget_redirects(&mut self, cluster: &mut Cluster) {
        self.redirects = None;
        cluster.redirects.clear();
    }

    pub(super) fn take(&mut self, cluster: &mut Cluster, update: AdmissionUpdate) -> News {
        let Admission { bundle, serves_policies } = &mut cluster.admission;
        match update {
            AdmissionUpdate::Published(event) => {
                let news = self
                    .published
                    .take(&mut self.bundles, event, ResourceExt::name_any, |object| observe::bundle(&object));
                *bundle = self.bundles.values().next().cloned();
                news
            }
            AdmissionUpdate::PoliciesServed(served) => {
                self.unasked = false;
                *serves_policies = served;
                News::Facts
            }
            AdmissionUpdate::Namespaces(event) => {
                let Some(Asked { namespaces, .. }) = &mut self.asked else { return News::Nothing };
                let labels =
                    |object: PartialObjectMeta<Namespace>| object.metadata.labels.unwrap_or_default();
                namespaces.take(&mut cluster.namespaces, event, ResourceExt::name_any, |object| {
                    Some(Arc::new(labels(object)))
                })
            }
            AdmissionUpdate::Pods(event) => {
                let Some(Asked { pods, .. }) = &mut self.asked else { return News::Nothing };
                pods.take(&mut cluster.sidecars, event, pod_key, |object| observe::sidecar_pod(&object))
            }
            AdmissionUpdate::AllPods(event) => {
                let Some(pods) = &mut self.redirects else { return News::Nothing };
                pods.take(&mut cluster.redirects, event, pod_key, |object| observe::redirect_pod(&object))
            }
        }
    }
}
