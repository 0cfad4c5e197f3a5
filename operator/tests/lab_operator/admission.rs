//! The admission objects that the operator creates.

use isp_lab::Lab;
use k8s_openapi::api::admissionregistration::v1::{
    MutatingAdmissionPolicy, MutatingAdmissionPolicyBinding, MutatingWebhookConfiguration,
};
use kube::api::ListParams;
use kube::{Api, ResourceExt};
use serde_json::json;

use super::harness::{OBJECT, Scenario, eventually};

/// The existing admission objects, by kind and name.
pub(crate) async fn names(lab: &Lab) -> Vec<String> {
    let all = ListParams::default();
    let ours = |name: &String| name.contains("sourcepreserve");
    let client = lab.client();
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

/// With an entry of each kind, both objects are created. Removing an entry removes its object.
pub(crate) async fn follows_the_entries(scenario: &Scenario) {
    let lab = &scenario.lab;
    let entry =
        |team: &str, via: &str| json!({"namespaceSelector": {"matchLabels": {"team": team}}, "via": via});
    let webhook = "webhook 0-sourcepreserve.io".to_owned();
    let policy = [0, 1].map(|place| {
        [
            format!("policy sourcepreserve.{OBJECT}.{place}"),
            format!("binding sourcepreserve.{OBJECT}.{place}"),
        ]
    });
    for (entries, expected) in [
        (
            json!([entry("a", "Webhook"), entry("b", "Policy")]),
            [vec![webhook.clone()], policy[1].to_vec()].concat(),
        ),
        (json!([entry("b", "Policy")]), policy[0].to_vec()),
        (json!([entry("a", "Webhook"), entry("c", "Policy")]), [vec![webhook], policy[1].to_vec()].concat()),
    ] {
        let patch = json!({"spec": {"sidecars": entries}}).to_string();
        lab.kubectl(["patch", "isp", OBJECT, "--type=merge", "-p", &patch]).await.unwrap();
        eventually("what the entries ask for is there", async || names(lab).await == expected).await;
    }
}
