//! The admission objects that the operator creates.

use k8s_openapi::api::admissionregistration::v1::{
    MutatingAdmissionPolicy, MutatingAdmissionPolicyBinding, MutatingWebhookConfiguration,
};
use kube::api::ListParams;
use kube::{Api, Client, ResourceExt};

/// The existing admission objects of the project, by kind and name.
pub async fn names(client: Client) -> Vec<String> {
    let all = ListParams::default();
    let ours = |name: &String| name.contains("sourcepreserve");
    let mut names = Vec::new();
    let webhooks = Api::<MutatingWebhookConfiguration>::all(client.clone()).list(&all).await.unwrap();
    names.extend(
        webhooks.iter().map(ResourceExt::name_any).filter(ours).map(|name| format!("webhook {name}")),
    );
    let policies = Api::<MutatingAdmissionPolicy>::all(client.clone()).list(&all).await.unwrap();
    names
        .extend(policies.iter().map(ResourceExt::name_any).filter(ours).map(|name| format!("policy {name}")));
    let bindings = Api::<MutatingAdmissionPolicyBinding>::all(client).list(&all).await.unwrap();
    names.extend(
        bindings.iter().map(ResourceExt::name_any).filter(ours).map(|name| format!("binding {name}")),
    );
    names
}
