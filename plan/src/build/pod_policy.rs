//! The policies for pods, which decide as the webhook does, without a call: one
//! MutatingAdmissionPolicy per entry, evaluated by the API server.
//!
//! A policy can set the annotation but cannot warn. Its match conditions cannot read the namespace,
//! so the decision is made in its variables, and the mutation is empty if the pod is to be left
//! unchanged.

use isp_api::names::INTERCEPTION_MODE_ANNOTATION;
use isp_api::preserve::Sidecars;
use isp_api::sidecar::{
    INJECT, NAMESPACE_INJECTION_LABEL, POD_SECURITY_LABEL, PROXY_CONFIG_ANNOTATION, REVISION_LABEL,
    STATUS_ANNOTATION, SYSTEM_NAMESPACES, TEMPLATES_ANNOTATION,
};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{LabelSelector, LabelSelectorRequirement};
use serde_json::{Value, json};

/// The API version of both objects.
pub const API_VERSION: &str = "admissionregistration.k8s.io/v1";

/// The policy of an entry. None with `redirect`, which needs the webhook.
pub fn policy(name: &str, entry: &Sidecars, own_namespace: &str) -> Option<Value> {
    let mode = entry.interception_mode()?;
    Some(json!({
        "apiVersion": API_VERSION,
        "kind": "MutatingAdmissionPolicy",
        "metadata": {"name": name, "labels": super::labels()},
        "spec": {
            "failurePolicy": "Ignore",
            "reinvocationPolicy": "Never",
            "matchConstraints": {
                "matchPolicy": "Equivalent",
                "namespaceSelector": namespaces(&entry.namespace_selector, own_namespace),
                "objectSelector": entry.pod_selector,
                "resourceRules": [{"apiGroups": [""], "apiVersions": ["v1"], "operations": ["CREATE"], "resources": ["pods"], "scope": "Namespaced"}],
            },
            "variables": variables().map(|(name, expression)| json!({"name": name, "expression": expression})),
            "mutations": [{
                "patchType": "ApplyConfiguration",
                "applyConfiguration": {"expression": format!(
                    "variables.set ? Object{{metadata: Object.metadata{{annotations: {{'{INTERCEPTION_MODE_ANNOTATION}': '{mode}'}}}}}} : Object{{}}"
                )},
            }],
        },
    }))
}

/// The binding that activates the policy.
pub fn binding(name: &str) -> Value {
    json!({
        "apiVersion": API_VERSION,
        "kind": "MutatingAdmissionPolicyBinding",
        "metadata": {"name": name, "labels": super::labels()},
        "spec": {"policyName": name},
    })
}

/// The entry's namespace selector, excluding system namespaces and our own.
pub fn namespaces(selector: &LabelSelector, own_namespace: &str) -> LabelSelector {
    let mut selector = selector.clone();
    let names = SYSTEM_NAMESPACES.into_iter().chain([own_namespace]).map(str::to_owned);
    selector.match_expressions.get_or_insert_default().push(LabelSelectorRequirement {
        key: "kubernetes.io/metadata.name".to_owned(),
        operator: "NotIn".to_owned(),
        values: Some(names.collect()),
    });
    selector
}

/// The policy's variables. Later ones refer to earlier ones.
fn variables() -> [(&'static str, String); 8] {
    [
        ("annotations", "object.metadata.?annotations.orValue({})".to_owned()),
        ("labels", "object.metadata.?labels.orValue({})".to_owned()),
        ("namespaceLabels", "namespaceObject.metadata.?labels.orValue({})".to_owned()),
        (
            "selected",
            format!(
                "'{NAMESPACE_INJECTION_LABEL}' in variables.namespaceLabels \
                 ? variables.namespaceLabels['{NAMESPACE_INJECTION_LABEL}'] == 'enabled' \
                 : '{REVISION_LABEL}' in variables.namespaceLabels || '{REVISION_LABEL}' in variables.labels \
                 || variables.labels[?'{INJECT}'].orValue('') == 'true'"
            ),
        ),
        (
            "refused",
            format!(
                "variables.labels[?'{INJECT}'].or(variables.annotations[?'{INJECT}']).orValue('') == 'false' \
                 || object.spec.?hostNetwork.orValue(false) \
                 || '{STATUS_ANNOTATION}' in variables.annotations \
                 || !variables.annotations[?'{TEMPLATES_ANNOTATION}'].orValue('sidecar').split(',').exists(t, t.trim() == 'sidecar')"
            ),
        ),
        (
            "chosen",
            format!(
                "'{INTERCEPTION_MODE_ANNOTATION}' in variables.annotations \
                 || variables.annotations[?'{PROXY_CONFIG_ANNOTATION}'].orValue('').contains('interceptionMode')"
            ),
        ),
        (
            "admitted",
            format!(
                "variables.namespaceLabels[?'{POD_SECURITY_LABEL}'].orValue('privileged') == 'privileged'"
            ),
        ),
        (
            "set",
            "variables.selected && !variables.refused && !variables.chosen && variables.admitted".to_owned(),
        ),
    ]
}
