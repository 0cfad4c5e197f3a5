//! The ServiceAccount of the webhook, the program most exposed to the network: it must not lead to
//! any other account.

use std::time::Duration;

use isp_lab::ControlPlane;
use isp_testkit::control_plane::SYSTEM;
use isp_testkit::until;
use serde_json::{Value, json};

use crate::stolen::{OPERATOR, Thief, WEBHOOK, install};

const SECRET: &str = "sourcepreserve-webhook-ca";
/// Matches "Forbidden" and "is forbidden".
const FORBIDDEN: &str = "orbidden";
/// The annotation that tells kube-controller-manager which ServiceAccount's token to put into a
/// Secret.
const ACCOUNT: &str = "kubernetes.io/service-account.name";

fn token_secret(name: &str) -> Value {
    json!({
        "apiVersion": "v1", "kind": "Secret", "type": "kubernetes.io/service-account-token",
        "metadata": {"name": name, "namespace": SYSTEM, "annotations": {ACCOUNT: OPERATOR.1}},
    })
}

/// The webhook's own Secret.
async fn own(thief: &Thief<'_>) -> Value {
    serde_json::from_str(
        &thief.succeeds(&["-n", SYSTEM, "get", "secret", SECRET, "-o", "json"], &Value::Null).await,
    )
    .unwrap()
}

#[tokio::test]
async fn the_account_of_the_webhook_does_not_lead_to_the_operators() {
    let cluster = ControlPlane::start().await.unwrap();
    install(&cluster).await;
    // An administrator gets a token this way, so the attempts below can fail only for lack of
    // permissions.
    let made = cluster
        .kubectl_with_input(&["create", "-f", "-"], &token_secret("by-an-administrator").to_string())
        .await;
    assert!(made.unwrap().success);
    let token = async |name: &str| {
        let get = ["-n", SYSTEM, "get", "secret", name, "-o", "jsonpath={.data.token}"];
        cluster.kubectl(&get).await.unwrap().stdout
    };
    until("the administrator has a token", async || !token("by-an-administrator").await.is_empty()).await;

    let thief = Thief::of(&cluster, WEBHOOK).await;
    makes_no_secret(&thief).await;
    turns_its_own_into_no_token(&thief).await;
    makes_nothing_that_has_a_token(&thief).await;
    becomes_nobody_else(&thief).await;

    // Enough time for the controller, which was faster for the administrator.
    tokio::time::sleep(Duration::from_secs(5)).await;
    assert_eq!(token(SECRET).await, "");
    let secrets = cluster.kubectl(&["-n", SYSTEM, "get", "secrets", "-o", "name"]).await.unwrap().stdout;
    assert_eq!(secrets, format!("secret/by-an-administrator\nsecret/{SECRET}\n"), "none was made");
}

async fn makes_no_secret(thief: &Thief<'_>) {
    let opaque =
        json!({"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "new", "namespace": SYSTEM}});
    let create = ["create", "-f", "-"];
    let apply = ["apply", "--server-side", "--force-conflicts", "-f", "-"];
    for secret in [token_secret("new"), opaque, token_secret(SECRET)] {
        thief.is_refused(&create, &secret, FORBIDDEN).await;
        thief.is_refused(&apply, &secret, FORBIDDEN).await;
    }
    // Updating a Secret that does not exist does not create it either.
    thief.is_refused(&["replace", "-f", "-"], &token_secret("new"), FORBIDDEN).await;
    for verb in [&["get"][..], &["delete"]] {
        thief
            .is_refused(
                &[verb, &["-n", SYSTEM, "secret", "by-an-administrator"]].concat(),
                &Value::Null,
                FORBIDDEN,
            )
            .await;
    }
    thief.is_refused(&["-n", SYSTEM, "get", "secrets"], &Value::Null, FORBIDDEN).await;
    // It cannot delete its own Secret to replace it by another of that name.
    thief.is_refused(&["-n", SYSTEM, "delete", "secret", SECRET], &Value::Null, FORBIDDEN).await;
    let all = ["-n", SYSTEM, "delete", "secrets", "--all"];
    thief.is_refused(&all, &Value::Null, FORBIDDEN).await;
}

async fn turns_its_own_into_no_token(thief: &Thief<'_>) {
    let replace = ["replace", "-f", "-"];
    let mut turned = own(thief).await;
    turned["type"] = json!("kubernetes.io/service-account-token");
    turned["metadata"]["annotations"][ACCOUNT] = json!(OPERATOR.1);
    thief.is_refused(&replace, &turned, "field is immutable").await;
    // The webhook may write the annotation, but it has no effect on a Secret of this type.
    let mut annotated = own(thief).await;
    annotated["metadata"]["annotations"][ACCOUNT] = json!(OPERATOR.1);
    thief.succeeds(&replace, &annotated).await;
    let patch = json!({"type": "kubernetes.io/service-account-token"}).to_string();
    thief.is_refused(&["-n", SYSTEM, "patch", "secret", SECRET, "-p", &patch], &Value::Null, FORBIDDEN).await;
}

async fn makes_nothing_that_has_a_token(thief: &Thief<'_>) {
    let (namespace, account) = OPERATOR;
    thief.is_refused(&["-n", namespace, "create", "token", account], &Value::Null, FORBIDDEN).await;
    let spec = json!({"serviceAccountName": account, "containers": [{"name": "a", "image": "none"}]});
    let labels = json!({"app": "a"});
    let template = json!({"metadata": {"labels": labels}, "spec": spec});
    let workload = json!({"selector": {"matchLabels": labels}, "template": template});
    for (version, kind, spec) in [
        ("v1", "Pod", spec.clone()),
        ("apps/v1", "Deployment", workload.clone()),
        ("apps/v1", "DaemonSet", workload),
        ("batch/v1", "Job", json!({"template": {"spec": spec}})),
    ] {
        for namespace in [SYSTEM, "kube-system"] {
            let object = json!({"apiVersion": version, "kind": kind, "metadata": {"name": "a", "namespace": namespace}, "spec": spec});
            thief.is_refused(&["create", "-f", "-"], &object, FORBIDDEN).await;
        }
    }
    let image =
        json!({"spec": {"template": {"spec": {"containers": [{"name": "operator", "image": "mine"}]}}}})
            .to_string();
    thief
        .is_refused(&["-n", SYSTEM, "patch", "deployment", account, "-p", &image], &Value::Null, FORBIDDEN)
        .await;
}

async fn becomes_nobody_else(thief: &Thief<'_>) {
    let operator = format!("--as=system:serviceaccount:{}:{}", OPERATOR.0, OPERATOR.1);
    thief.is_refused(&["get", "nodes", &operator], &Value::Null, FORBIDDEN).await;
    let role = ["-n", SYSTEM, "create", "rolebinding", "mine", "--clusterrole=admin", "--serviceaccount=a:b"];
    thief.is_refused(&role, &Value::Null, FORBIDDEN).await;
    let role =
        ["create", "clusterrolebinding", "mine", "--clusterrole=cluster-admin", "--serviceaccount=a:b"];
    thief.is_refused(&role, &Value::Null, FORBIDDEN).await;
    // The operator owns the configuration for pods.
    let anything = json!({"webhooks": []}).to_string();
    let patch =
        ["patch", "mutatingwebhookconfiguration", "0-sourcepreserve.io", "--type=merge", "-p", &anything];
    thief.is_refused(&patch, &Value::Null, FORBIDDEN).await;
}
