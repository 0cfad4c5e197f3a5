//! The permissions of each ServiceAccount, one by one: queried from the API server, and tried where
//! it matters most.

use isp_lab::ControlPlane;
use isp_testkit::control_plane::{SYSTEM, api_server_versions};
use isp_testkit::until;
use serde_json::{Value, json};

use crate::stolen::{AGENT, OPERATOR, Thief, WEBHOOK, install};

/// A verb, a resource (with a name, or a subresource after a double slash), and the namespace, if
/// any.
type Right = (&'static str, &'static str, &'static str);

const EVERYWHERE: &str = "";
const PROXIES: &str = "kube-system";

const MAY: &[((&str, &str), &[Right])] = &[
    (
        OPERATOR,
        &[
            ("create", "daemonsets.apps", PROXIES),
            ("patch", "services", "default"),
            ("patch", "nodes", EVERYWHERE),
            ("create", "mutatingwebhookconfigurations.admissionregistration.k8s.io", EVERYWHERE),
            ("create", "mutatingadmissionpolicies.admissionregistration.k8s.io", EVERYWHERE),
            ("list", "pods", "default"),
            ("create", "clusterrolebindings.rbac.authorization.k8s.io", EVERYWHERE),
            ("bind", "clusterroles.rbac.authorization.k8s.io/system:node-proxier", EVERYWHERE),
            ("create", "validatingadmissionpolicies.admissionregistration.k8s.io", EVERYWHERE),
            ("create", "serviceaccounts", PROXIES),
        ],
    ),
    (
        WEBHOOK,
        &[
            (
                "patch",
                "validatingwebhookconfigurations.admissionregistration.k8s.io/sourcepreserve.io",
                EVERYWHERE,
            ),
            ("update", "secrets/sourcepreserve-webhook-ca", SYSTEM),
            ("list", "services", "default"),
            ("list", "nodes", EVERYWHERE),
        ],
    ),
    (
        AGENT,
        &[
            ("patch", "ingresssourcenodes.sourcepreserve.io", EVERYWHERE),
            ("list", "services", "default"),
            ("create", "events.events.k8s.io", "default"),
        ],
    ),
];

const MAY_NOT: &[((&str, &str), &[Right])] = &[
    (
        OPERATOR,
        &[
            ("create", "daemonsets.apps", "default"),
            ("create", "deployments.apps", PROXIES),
            ("delete", "services", "default"),
            ("delete", "nodes", EVERYWHERE),
            (
                "patch",
                "validatingwebhookconfigurations.admissionregistration.k8s.io/sourcepreserve.io",
                EVERYWHERE,
            ),
            (
                "patch",
                "mutatingwebhookconfigurations.admissionregistration.k8s.io/istio-sidecar-injector",
                EVERYWHERE,
            ),
            ("get", "configmaps", "default"),
            ("bind", "clusterroles.rbac.authorization.k8s.io/cluster-admin", EVERYWHERE),
            ("patch", "clusterrolebindings.rbac.authorization.k8s.io/cluster-admin", EVERYWHERE),
            ("create", "serviceaccounts", SYSTEM),
            ("delete", "serviceaccounts/another", PROXIES),
        ],
    ),
    (
        WEBHOOK,
        &[
            ("create", "clusterrolebindings.rbac.authorization.k8s.io", EVERYWHERE),
            ("create", "validatingwebhookconfigurations.admissionregistration.k8s.io", EVERYWHERE),
            ("patch", "validatingwebhookconfigurations.admissionregistration.k8s.io/another", EVERYWHERE),
            (
                "patch",
                "mutatingwebhookconfigurations.admissionregistration.k8s.io/0-sourcepreserve.io",
                EVERYWHERE,
            ),
            ("patch", "ingresssourcepreserves.sourcepreserve.io", EVERYWHERE),
            ("patch", "services", "default"),
            ("list", "pods", "default"),
            ("get", "secrets/another", SYSTEM),
            ("delete", "secrets/sourcepreserve-webhook-ca", SYSTEM),
            ("patch", "secrets/sourcepreserve-webhook-ca", SYSTEM),
        ],
    ),
    (
        AGENT,
        &[
            ("patch", "ingresssourcepreserves.sourcepreserve.io", EVERYWHERE),
            ("delete", "ingresssourcenodes.sourcepreserve.io", EVERYWHERE),
            ("create", "clusterrolebindings.rbac.authorization.k8s.io", EVERYWHERE),
            ("patch", "services", "default"),
            ("patch", "nodes", EVERYWHERE),
            ("list", "pods", "default"),
        ],
    ),
];

/// Permissions that would give access to every ServiceAccount of a namespace or of the cluster.
const NOBODY_MAY: &[Right] = &[
    ("create", "secrets", SYSTEM),
    ("create", "secrets", PROXIES),
    ("list", "secrets", PROXIES),
    ("create", "serviceaccounts//token", SYSTEM),
    ("create", "serviceaccounts//token", PROXIES),
    ("create", "pods", SYSTEM),
    ("create", "pods", PROXIES),
    ("create", "pods//exec", SYSTEM),
    ("create", "pods//ephemeralcontainers", PROXIES),
    ("patch", "deployments.apps", SYSTEM),
    ("create", "jobs.batch", SYSTEM),
    ("create", "rolebindings.rbac.authorization.k8s.io", SYSTEM),
    ("patch", "clusterroles.rbac.authorization.k8s.io", EVERYWHERE),
    ("escalate", "clusterroles.rbac.authorization.k8s.io", EVERYWHERE),
    ("bind", "clusterroles.rbac.authorization.k8s.io", EVERYWHERE),
    ("impersonate", "users", EVERYWHERE),
    ("impersonate", "serviceaccounts", SYSTEM),
    ("create", "certificatesigningrequests.certificates.k8s.io", EVERYWHERE),
    ("create", "nodes//proxy", EVERYWHERE),
];

/// Whether the API server allows it.
async fn may(thief: &Thief<'_>, (verb, resource, namespace): Right) -> bool {
    let (resource, part) = resource.split_once("//").unwrap_or((resource, ""));
    let part = format!("--subresource={part}");
    let mut arguments = vec!["auth", "can-i", verb, resource, &part];
    if !namespace.is_empty() {
        arguments.extend(["-n", namespace]);
    }
    let output = thief.kubectl(&arguments, &Value::Null).await;
    match output.stdout.trim() {
        "yes" => true,
        no if no.starts_with("no") => false,
        _ => panic!("{arguments:?}: {output:?}"),
    }
}

#[tokio::test]
async fn each_account_can_be_misused_as_the_docs_say_and_no_further() {
    let cluster = ControlPlane::start().await.unwrap();
    install(&cluster).await;
    for account in [OPERATOR, WEBHOOK, AGENT] {
        let thief = Thief::of(&cluster, account).await;
        let of = |table: &'static [((&str, &str), &[Right])]| {
            table.iter().filter(move |(of, _)| *of == account).flat_map(|(_, rights)| *rights)
        };
        for right in of(MAY) {
            assert!(may(&thief, *right).await, "{account:?} may not {right:?}");
        }
        for right in of(MAY_NOT).chain(NOBODY_MAY) {
            assert!(!may(&thief, *right).await, "{account:?} may {right:?}");
        }
    }
    the_operator_runs_anything_beside_kube_proxy(&Thief::of(&cluster, OPERATOR).await).await;
    the_operator_gives_nobody_more_than_it_has(&Thief::of(&cluster, OPERATOR).await).await;
}

#[tokio::test]
async fn an_api_server_holds_the_webhook_to_its_ca_bundle() {
    for version in api_server_versions() {
        let cluster = ControlPlane::start_version(version).await.unwrap();
        install(&cluster).await;
        the_webhook_changes_its_ca_bundle_and_no_other_field(&Thief::of(&cluster, WEBHOOK).await).await;
    }
}

async fn the_operator_runs_anything_beside_kube_proxy(thief: &Thief<'_>) {
    let labels = json!({"app": "a"});
    let container = json!({"name": "a", "image": "a", "securityContext": {"privileged": true}});
    let spec = json!({
        "hostPID": true, "containers": [container],
        "volumes": [{"name": "node", "hostPath": {"path": "/"}}],
    });
    let set = |namespace: &str| {
        json!({
            "apiVersion": "apps/v1", "kind": "DaemonSet", "metadata": {"name": "a", "namespace": namespace},
            "spec": {"selector": {"matchLabels": labels}, "template": {"metadata": {"labels": labels}, "spec": spec}},
        })
    };
    let create = ["create", "--dry-run=server", "-f", "-"];
    thief.succeeds(&create, &set(PROXIES)).await;
    thief.is_refused(&create, &set(SYSTEM), "Forbidden").await;
}

async fn the_operator_gives_nobody_more_than_it_has(thief: &Thief<'_>) {
    let group = "rbac.authorization.k8s.io";
    let binding = |role: &str| {
        json!({
            "apiVersion": format!("{group}/v1"), "kind": "ClusterRoleBinding", "metadata": {"name": "a"},
            "roleRef": {"apiGroup": group, "kind": "ClusterRole", "name": role},
            "subjects": [{"kind": "ServiceAccount", "name": "a", "namespace": "default"}],
        })
    };
    let create = ["create", "--dry-run=server", "-f", "-"];
    for role in ["sourcepreserve-proxy-agent", "system:node-proxier"] {
        thief.succeeds(&create, &binding(role)).await;
    }
    for role in ["cluster-admin", "edit", "system:node"] {
        thief
            .is_refused(&create, &binding(role), "attempting to grant RBAC permissions not currently held")
            .await;
    }
    let role = json!({
        "apiVersion": format!("{group}/v1"), "kind": "ClusterRole", "metadata": {"name": "sourcepreserve-proxy-agent"},
        "rules": [{"apiGroups": [""], "resources": ["secrets"], "verbs": ["get"]}],
    });
    let apply = ["apply", "--server-side", "--force-conflicts", "--dry-run=server", "-f", "-"];
    thief.is_refused(&apply, &role, "attempting to grant RBAC permissions not currently held").await;
}

/// RBAC cannot restrict fields, so an admission policy does. The API server takes a moment to load
/// it.
async fn the_webhook_changes_its_ca_bundle_and_no_other_field(thief: &Thief<'_>) {
    let apply =
        |manager| ["apply", "--server-side", "--force-conflicts", "--dry-run=server", manager, "-f", "-"];
    let mine = apply("--field-manager=sourcepreserve-webhook");
    let configuration = |metadata: Value, webhook: Value| {
        let mut applied = json!({
            "apiVersion": "admissionregistration.k8s.io/v1", "kind": "ValidatingWebhookConfiguration",
            "metadata": {"name": "sourcepreserve.io"}, "webhooks": [{"name": "objects.sourcepreserve.io"}],
        });
        merge(&mut applied["metadata"], metadata);
        merge(&mut applied["webhooks"][0], webhook);
        applied
    };
    let of_webhook = |webhook: Value| configuration(json!({}), webhook);
    let secrets =
        json!([{"apiGroups": [""], "apiVersions": ["v1"], "operations": ["*"], "resources": ["secrets"]}]);
    until("the policy holds", async || {
        !thief.kubectl(&mine, &of_webhook(json!({"rules": secrets}))).await.success
    })
    .await;

    let webhook_refused = "may not change any field but clientConfig.caBundle";
    for webhook in [
        json!({"rules": secrets}),
        json!({"clientConfig": {"service": {"namespace": "default", "name": "attacker"}}}),
        json!({"failurePolicy": "Fail"}),
        json!({"timeoutSeconds": 30}),
        json!({"matchConditions": [{"name": "never", "expression": "false"}]}),
        json!({"namespaceSelector": {"matchLabels": {"a": "b"}}}),
        json!({"objectSelector": {"matchLabels": {"a": "b"}}}),
        json!({"matchPolicy": "Exact"}),
        json!({"sideEffects": "NoneOnDryRun"}),
        json!({"admissionReviewVersions": ["v1", "v1beta1"]}),
        // An additional webhook.
        json!({
            "name": "more.example.com", "admissionReviewVersions": ["v1"], "sideEffects": "None", "rules": secrets,
            "clientConfig": {"url": "https://attacker.example/"},
        }),
    ] {
        thief.is_refused(&mine, &of_webhook(webhook), webhook_refused).await;
    }
    // As the installation's field manager, which would allow removing its fields.
    let other = json!({
        "admissionReviewVersions": ["v1"], "sideEffects": "None", "rules": secrets,
        "clientConfig": {"url": "https://attacker.example/"},
    });
    let policy = "sourcepreserve-webhook-ca-bundle-only";
    thief.is_refused(&apply("--field-manager=kubectl"), &of_webhook(other), policy).await;
    for metadata in [
        json!({"labels": {"a": "b"}}),
        json!({"annotations": {"a": "b"}}),
        json!({"finalizers": ["example.com/mine"]}),
        json!({"ownerReferences": [{"apiVersion": "v1", "kind": "Namespace", "name": "gone", "uid": "1"}]}),
    ] {
        let refused = "metadata: the webhook may not change it";
        thief.is_refused(&mine, &configuration(metadata, json!({})), refused).await;
    }
    let bundle = json!({"clientConfig": {"caBundle": k8s_openapi::ByteString(CERTIFICATE.into())}});
    thief.succeeds(&mine, &of_webhook(bundle)).await;
}

/// A certificate that the API server accepts as a CA bundle.
const CERTIFICATE: &str = include_str!("certificate.pem");

fn merge(into: &mut Value, fields: Value) {
    if let (Value::Object(into), Value::Object(fields)) = (into, fields) {
        into.extend(fields);
    }
}
