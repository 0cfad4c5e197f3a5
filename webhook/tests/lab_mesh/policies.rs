//! Policies by source IP: at the gateway by the peer, at the application by the forwarded IP.

use isp_lab::istio::NAMESPACE;
use isp_lab::{Answer, Place};
use serde_json::json;

use super::harness::{SHOP, Scenario};

/// The range of `client`; `client-2` is outside it.
const ADMITTED: &str = "198.51.100.0/24";

pub(crate) async fn apply(scenario: &Scenario) {
    let policy = |name: &str, namespace: &str, app: serde_json::Value, field: &str| {
        json!({
            "apiVersion": "security.istio.io/v1", "kind": "AuthorizationPolicy",
            "metadata": {"name": name, "namespace": namespace},
            "spec": {
                "selector": {"matchLabels": app},
                "action": "ALLOW",
                "rules": [{"from": [{"source": {field: [ADMITTED]}}]}],
            },
        })
    };
    // One application is protected at its own sidecar; the gateway protects both.
    let items = json!([
        policy("by-forwarded", SHOP, json!({"app": "plain"}), "remoteIpBlocks"),
        policy("by-peer", NAMESPACE, json!({"istio": "ingressgateway"}), "ipBlocks"),
    ]);
    scenario
        .lab
        .apply(&json!({"apiVersion": "v1", "kind": "List", "items": items}).to_string())
        .await
        .unwrap();
}

fn refused(answer: &Answer) -> bool {
    *answer == Answer::Silent("status 403".to_owned())
}

/// The source IP is lost, so the policies reject a client that they should admit.
pub(crate) async fn judge_wrongly(scenario: &Scenario) {
    for name in ["plain", "native"] {
        scenario.expect("who may enter is refused", &Place::Client, name, refused).await;
    }
    // Without the gateway's policy, the one at the application is just as wrong.
    delete_by_peer(scenario).await;
    scenario
        .expect("only the application judges", &Place::Client, "native", |answer| answer.peer().is_some())
        .await;
    scenario.expect("who may enter is refused", &Place::Client, "plain", refused).await;
    apply(scenario).await;
}

async fn delete_by_peer(scenario: &Scenario) {
    scenario.lab.kubectl(["-n", NAMESPACE, "delete", "authorizationpolicy", "by-peer"]).await.unwrap();
}

/// Each policy admits exactly the clients that it names.
pub(crate) async fn judge_rightly(scenario: &Scenario) {
    for name in ["plain", "native"] {
        scenario.expect("who may enter does", &Place::Client, name, |answer| answer.peer().is_some()).await;
        scenario.expect("who may not does not", &Place::Client2, name, refused).await;
    }
    delete_by_peer(scenario).await;
    scenario
        .expect("only the application judges", &Place::Client2, "native", |answer| answer.peer().is_some())
        .await;
    scenario.expect("who may enter does", &Place::Client, "plain", |answer| answer.peer().is_some()).await;
    scenario.expect("who may not does not", &Place::Client2, "plain", refused).await;
    apply(scenario).await;
    scenario.expect("the gateway judges again", &Place::Client2, "native", refused).await;
}
