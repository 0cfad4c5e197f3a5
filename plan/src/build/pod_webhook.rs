//! The webhook configuration for pods: which pods the API server sends to the webhook.

use isp_api::names::{POD_WEBHOOK_CONFIGURATION, WEBHOOK_SERVICE};
use isp_api::sidecar::STATUS_ANNOTATION;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::LabelSelector;
use serde_json::{Value, json};

/// Pods that the webhook is asked about.
#[derive(Clone, Debug, PartialEq)]
pub struct Asked {
    /// Selects their namespaces.
    pub namespaces: LabelSelector,
    /// Selects them.
    pub pods: LabelSelector,
    /// Whether an entry with `redirect` asks. The webhook then sees also the pods that it leaves
    /// alone in any case, to warn their authors.
    pub redirect: bool,
}

/// The configuration, with one webhook for each pair of namespace and pod selector.
pub fn configuration(asked: &[Asked], bundle: &str, own_namespace: &str) -> Value {
    let webhook = |(place, Asked { namespaces, pods, redirect }): (usize, &Asked)| {
        let mut webhook = json!({
            "name": format!("pods-{place}.sourcepreserve.io"),
            "admissionReviewVersions": ["v1"],
            "sideEffects": "None",
            "failurePolicy": "Ignore",
            "matchPolicy": "Equivalent",
            "reinvocationPolicy": "Never",
            "timeoutSeconds": 2,
            "clientConfig": {
                "caBundle": bundle,
                "service": {"namespace": own_namespace, "name": WEBHOOK_SERVICE, "path": "/mutate/pods", "port": 443},
            },
            "rules": [{"operations": ["CREATE"], "apiGroups": [""], "apiVersions": ["v1"], "resources": ["pods"], "scope": "Namespaced"}],
            "namespaceSelector": namespaces,
            "objectSelector": pods,
        });
        if !redirect {
            webhook["matchConditions"] = without_effect_for_istio();
        }
        webhook
    };
    let webhooks: Vec<Value> = asked.iter().enumerate().map(webhook).collect();
    json!({
        "apiVersion": "admissionregistration.k8s.io/v1",
        "kind": "MutatingWebhookConfiguration",
        "metadata": {"name": POD_WEBHOOK_CONFIGURATION, "labels": super::labels()},
        "webhooks": webhooks,
    })
}

/// Excludes pods for which an interception mode has no effect.
fn without_effect_for_istio() -> Value {
    json!([
        {"name": "not-on-the-host", "expression": "!object.spec.?hostNetwork.orValue(false)"},
        {"name": "not-injected", "expression": format!("!('{STATUS_ANNOTATION}' in object.metadata.?annotations.orValue({{}}))")},
    ])
}
