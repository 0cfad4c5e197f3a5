//! What decides on new pods; and, while an object asks for sidecars, the namespaces and the pods that have one.

use std::collections::BTreeMap;
use std::sync::Arc;

use isp_api::sidecar::Labels;
use isp_plan::action::Resource;
use isp_plan::cluster::{Admission, SidecarPod, Written};
use isp_plan::{Cluster, Key, observe};
use isp_runtime::readiness::Readiness;
use k8s_openapi::api::admissionregistration::v1::{
    MutatingAdmissionPolicy, MutatingAdmissionPolicyBinding, MutatingWebhookConfiguration,
    ValidatingWebhookConfiguration,
};
use k8s_openapi::api::core::v1::{Namespace, Pod};
use kube::ResourceExt;
use kube::core::PartialObjectMeta;
use kube::runtime::watcher::Event;

use super::reading::{self, Reading, told};
use super::{News, pod_key};

/// Something that was read.
#[allow(clippy::large_enum_variant, reason = "it is boxed as a whole")]
pub(crate) enum AdmissionUpdate {
    /// Where the webhook publishes by what it can be trusted.
    Published(Event<ValidatingWebhookConfiguration>),
    Webhooks(Event<MutatingWebhookConfiguration>),
    /// Whether the API server has the two kinds that follow.
    PoliciesServed(bool),
    Policies(Event<MutatingAdmissionPolicy>),
    Bindings(Event<MutatingAdmissionPolicyBinding>),
    Namespaces(Event<PartialObjectMeta<Namespace>>),
    Pods(Event<Pod>),
}

/// What the API server answered to a write.
pub(crate) enum AdmissionAnswer {
    Webhook(MutatingWebhookConfiguration),
    Policy(MutatingAdmissionPolicy),
    Binding(MutatingAdmissionPolicyBinding),
}

/// How far the reading of each kind has come.
pub(super) struct Readings {
    bundles: BTreeMap<String, String>,
    published: Reading<String, String>,
    webhooks: Reading<String, Written>,
    /// Until it is known whether there are policies.
    unasked: bool,
    policies: Reading<String, Written>,
    bindings: Reading<String, Written>,
    asked: Option<Asked>,
}

/// What is read while an object asks for sidecars.
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
            webhooks: Reading::new(pending("mutatingwebhookconfigurations")),
            unasked: true,
            policies: Reading::new(None),
            bindings: Reading::new(None),
            asked: None,
        }
    }

    /// What has not been read whole yet.
    pub(super) fn missing(&self, cluster: &Cluster) -> impl Iterator<Item = &'static str> {
        let policies = !self.unasked && !cluster.admission.serves_policies;
        let asked = self.asked.as_ref();
        let namespaces = asked.is_none_or(|asked| asked.namespaces.is_whole());
        let pods = asked.is_none_or(|asked| asked.pods.is_whole());
        [
            ("validatingwebhookconfigurations", self.published.is_whole()),
            ("mutatingwebhookconfigurations", self.webhooks.is_whole()),
            ("mutatingadmissionpolicies", policies || self.policies.is_whole()),
            ("mutatingadmissionpolicybindings", policies || self.bindings.is_whole()),
            ("namespaces", namespaces),
            ("pods with a sidecar", pods),
        ]
        .into_iter()
        .filter(|(_, whole)| !whole)
        .map(|(name, _)| name)
    }

    /// Begins to read what is needed while an object asks for sidecars.
    pub(super) fn follow(&mut self) {
        self.asked = Some(Asked { namespaces: Reading::new(None), pods: Reading::new(None) });
    }

    /// Forgets it.
    pub(super) fn forget(&mut self, cluster: &mut Cluster) {
        self.asked = None;
        cluster.namespaces.clear();
        cluster.sidecars.clear();
    }

    pub(super) fn take(&mut self, cluster: &mut Cluster, update: AdmissionUpdate) -> News {
        let Admission { bundle, webhooks, policies, bindings, serves_policies } = &mut cluster.admission;
        match update {
            AdmissionUpdate::Published(event) => {
                let told = told(event, ResourceExt::name_any, |object| observe::bundle(&object));
                let news = self.published.take(&mut self.bundles, told);
                *bundle = self.bundles.values().next().cloned();
                news
            }
            AdmissionUpdate::Webhooks(event) => {
                let told = told(event, ResourceExt::name_any, |object| Some(webhook(&object)));
                self.webhooks.take(webhooks, told)
            }
            AdmissionUpdate::PoliciesServed(served) => {
                self.unasked = false;
                *serves_policies = served;
                News::Facts
            }
            AdmissionUpdate::Policies(event) => {
                let told = told(event, ResourceExt::name_any, |object| Some(policy(&object)));
                self.policies.take(policies, told)
            }
            AdmissionUpdate::Bindings(event) => {
                let told = told(event, ResourceExt::name_any, |object| Some(binding(&object)));
                self.bindings.take(bindings, told)
            }
            AdmissionUpdate::Namespaces(event) => {
                let Some(Asked { namespaces, .. }) = &mut self.asked else { return News::Nothing };
                let labels =
                    |object: PartialObjectMeta<Namespace>| object.metadata.labels.unwrap_or_default();
                let told = told(event, ResourceExt::name_any, |object| Some(Arc::new(labels(object))));
                namespaces.take(&mut cluster.namespaces, told)
            }
            AdmissionUpdate::Pods(event) => {
                let Some(Asked { pods, .. }) = &mut self.asked else { return News::Nothing };
                let told = told(event, pod_key, |object| observe::sidecar_pod(&object));
                pods.take(&mut cluster.sidecars, told)
            }
        }
    }

    pub(super) fn take_answer(&mut self, cluster: &mut Cluster, answer: &AdmissionAnswer) -> News {
        let Admission { webhooks, policies, bindings, .. } = &mut cluster.admission;
        match answer {
            AdmissionAnswer::Webhook(object) => {
                self.webhooks.take_answer(webhooks, object.name_any(), webhook(object), false)
            }
            AdmissionAnswer::Policy(object) => {
                self.policies.take_answer(policies, object.name_any(), policy(object), false)
            }
            AdmissionAnswer::Binding(object) => {
                self.bindings.take_answer(bindings, object.name_any(), binding(object), false)
            }
        }
    }
}

/// The objects of a kind that is written.
pub(super) fn of(admission: &Admission, resource: Resource) -> Option<&BTreeMap<String, Written>> {
    match resource {
        Resource::PodWebhook => Some(&admission.webhooks),
        Resource::PodPolicy => Some(&admission.policies),
        Resource::PodPolicyBinding => Some(&admission.bindings),
        _ => None,
    }
}

/// Removes one that was deleted.
pub(super) fn remove(admission: &mut Admission, resource: Resource, name: &String, uid: &str) -> News {
    let known = match resource {
        Resource::PodWebhook => &mut admission.webhooks,
        Resource::PodPolicy => &mut admission.policies,
        Resource::PodPolicyBinding => &mut admission.bindings,
        // Nothing else is ever deleted.
        _ => return News::Nothing,
    };
    reading::remove(known, name, |written| written.identity.uid == uid)
}

fn webhook(object: &MutatingWebhookConfiguration) -> Written {
    observe::written(&object.metadata, &object.webhooks)
}

fn policy(object: &MutatingAdmissionPolicy) -> Written {
    observe::written(&object.metadata, &object.spec)
}

fn binding(object: &MutatingAdmissionPolicyBinding) -> Written {
    observe::written(&object.metadata, &object.spec)
}
