//! The account of the agents: the objects that agents in the given namespaces need. For
//! `kube-system` they equal `manifests/agent`; a test compares them.

use std::collections::{BTreeMap, BTreeSet};

use isp_api::names::{AGENT_NAME, AGENT_POLICY, AGENT_ROLE, NODE_PROXIER_BINDING};
use serde_json::{Value, json};

use crate::cluster::Key;
use crate::own::OwnKind;

/// Upstream's ClusterRole for kube-proxy, which runs in the agents' pods.
const NODE_PROXIER: &str = "system:node-proxier";

/// The objects by kind and name. Empty without namespaces.
pub(crate) fn wanted(
    namespaces: &BTreeSet<String>,
    pull_secrets: &[String],
) -> BTreeMap<(OwnKind, Key), Value> {
    if namespaces.is_empty() {
        return BTreeMap::new();
    }
    let account = |namespace: &String| {
        let key = Key::new(namespace.as_str(), AGENT_NAME);
        let mut account = object(OwnKind::Account, &key);
        if !pull_secrets.is_empty() {
            let secrets: Vec<Value> = pull_secrets.iter().map(|name| json!({"name": name})).collect();
            account["imagePullSecrets"] = json!(secrets);
        }
        ((OwnKind::Account, key), account)
    };
    let cluster_wide = [
        (OwnKind::Role, AGENT_ROLE, json!({"rules": rules()})),
        (OwnKind::RoleBinding, AGENT_ROLE, binding(AGENT_ROLE, namespaces)),
        (OwnKind::RoleBinding, NODE_PROXIER_BINDING, binding(NODE_PROXIER, namespaces)),
        (OwnKind::AgentPolicy, AGENT_POLICY, json!({"spec": policy(namespaces)})),
        (
            OwnKind::AgentPolicyBinding,
            AGENT_POLICY,
            json!({"spec": {"policyName": AGENT_POLICY, "validationActions": ["Deny"]}}),
        ),
    ];
    let cluster_wide = cluster_wide.into_iter().map(|(kind, name, content)| {
        let key = Key::new("", name);
        let mut object = object(kind, &key);
        if let (Some(object), Value::Object(content)) = (object.as_object_mut(), content) {
            object.extend(content);
        }
        ((kind, key), object)
    });
    namespaces.iter().map(account).chain(cluster_wide).collect()
}

fn object(kind: OwnKind, key: &Key) -> Value {
    let mut metadata = json!({"name": key.name, "labels": super::labels()});
    if !key.namespace.is_empty() {
        metadata["namespace"] = json!(key.namespace);
    }
    let resource = kind.resource();
    json!({"apiVersion": resource.api_version, "kind": resource.kind, "metadata": metadata})
}

/// Agents read objects and nodes to compute their view, and write their acknowledgement, which
/// server-side apply creates by patch. The operator must hold all these rights itself: RBAC forbids
/// granting more than one has.
fn rules() -> Value {
    json!([
        {"apiGroups": ["sourcepreserve.io"], "resources": ["ingresssourcepreserves"], "verbs": ["list", "watch"]},
        {"apiGroups": [""], "resources": ["nodes"], "verbs": ["list", "watch"]},
        {"apiGroups": ["sourcepreserve.io"], "resources": ["ingresssourcenodes"], "verbs": ["create", "list", "patch", "watch"]},
        {"apiGroups": ["sourcepreserve.io"], "resources": ["ingresssourcenodes/status"], "verbs": ["patch"]},
    ])
}

fn binding(role: &str, namespaces: &BTreeSet<String>) -> Value {
    let subject =
        |namespace: &String| json!({"kind": "ServiceAccount", "name": AGENT_NAME, "namespace": namespace});
    json!({
        "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": role},
        "subjects": namespaces.iter().map(subject).collect::<Vec<_>>(),
    })
}

/// Restricts an agent to acknowledging for its own node. RBAC cannot restrict a name that differs
/// per node. The policy therefore compares the name with the node in the caller's token: tokens
/// that the kubelet mounts are bound to their pod and so to its node.
fn policy(namespaces: &BTreeSet<String>) -> Value {
    let users: Vec<String> =
        namespaces.iter().map(|name| format!("'system:serviceaccount:{name}:{AGENT_NAME}'")).collect();
    json!({
        "failurePolicy": "Fail",
        "matchConstraints": {"resourceRules": [{
            "apiGroups": ["sourcepreserve.io"],
            "apiVersions": ["*"],
            "operations": ["CREATE", "UPDATE"],
            "resources": ["ingresssourcenodes", "ingresssourcenodes/status"],
        }]},
        "matchConditions": [{
            "name": "by-an-agent",
            "expression": format!("request.userInfo.username in [{}]", users.join(", ")),
        }],
        "variables": [{
            "name": "node",
            "expression": "request.userInfo.?extra[?'authentication.kubernetes.io/node-name'][?0].orValue('')",
        }],
        "validations": [
            {
                "expression": "variables.node != ''",
                "reason": "Forbidden",
                "messageExpression": "'the token of ' + request.userInfo.username + ' is bound to no node, so it may not write the \
                    IngressSourceNode ' + object.metadata.name + ': use the one that the kubelet mounts into the pod, or, to try \
                    things, kubectl -n kube-system create token proxy-agent --bound-object-kind Node --bound-object-name ' + \
                    object.metadata.name",
            },
            {
                "expression": "variables.node == '' || object.metadata.name in [variables.node, variables.node + '.beside']",
                "reason": "Forbidden",
                "messageExpression": "'metadata.name: ' + object.metadata.name + ' is not the node of this agent, whose token is bound \
                    to ' + variables.node + ': an agent writes the IngressSourceNode of its own node only; is --node-name right?'",
            },
            {
                "expression": "variables.node == '' || !has(object.status) || object.status.mode == (object.metadata.name == variables.node ? 'Filter' : 'Beside')",
                "reason": "Forbidden",
                "messageExpression": "'status.mode: ' + object.status.mode + ' does not belong into the IngressSourceNode ' + \
                    object.metadata.name + ': mode Filter reports under the name of the node, and mode Beside adds .beside to it'",
            },
        ],
    })
}

#[cfg(test)]
mod tests;
