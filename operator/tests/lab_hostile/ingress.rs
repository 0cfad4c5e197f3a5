//! Ingress nodes that disappear.

use isp_lab::{Place, Protocol};
use isp_testkit::web_lab::{EDGE, ELSEWHERE, EXTERNAL, OBJECT, WebLab, addresses, has_agent_label};
use isp_testkit::{answers, until};
use serde_json::json;

use crate::A_WHILE;

const LABEL: &str = "node-role.kubernetes.io/ingress";

async fn stays_without_an_agent(scenario: &WebLab) {
    let message = scenario.wait_for_condition("Degraded", "True", "LastIngressNode").await;
    assert!(message.contains(EDGE), "{message}");
    tokio::time::sleep(A_WHILE).await;
    assert!(!has_agent_label(&scenario.lab, EDGE).await, "the last ingress node was handed over");
    addresses::arrive(scenario).await;
}

/// `kubectl label node edge-1 node-role.kubernetes.io/ingress-`
pub(crate) async fn the_last_one_is_unlabelled(scenario: &WebLab) {
    scenario.lab.kubectl(["label", "node", EDGE, &format!("{LABEL}-")]).await.unwrap();
    stays_without_an_agent(scenario).await;
    scenario.lab.kubectl(["label", "node", EDGE, &format!("{LABEL}=")]).await.unwrap();
    scenario.wait_until_ready().await;
}

/// The selector is changed to match nothing.
pub(crate) async fn none_is_selected(scenario: &WebLab) {
    let select = |labels: serde_json::Value| {
        json!([{"op": "replace", "path": "/spec/ingressNodes/selector", "value": {"matchLabels": labels}}])
            .to_string()
    };
    let nothing = select(json!({"no": "node"}));
    scenario.lab.kubectl(["patch", "isp", OBJECT, "--type=json", "-p", &nothing]).await.unwrap();
    stays_without_an_agent(scenario).await;
    let before = select(json!({LABEL: ""}));
    scenario.lab.kubectl(["patch", "isp", OBJECT, "--type=json", "-p", &before]).await.unwrap();
    scenario.wait_until_ready().await;
}

/// The application moves to a non-ingress node and the external IP follows it, as with `MetalLB`
/// when the ingress node dies.
pub(crate) async fn the_application_moves(scenario: &WebLab) {
    let lab = &scenario.lab;
    let node = ELSEWHERE[0];
    // Another pod of the Service, already running.
    let pod = lab.kubectl(["-n", "web", "get", "pod", "frontend", "-o", "json"]).await.unwrap().stdout;
    let pod: serde_json::Value = serde_json::from_str(&pod).unwrap();
    let moved = json!({
        "apiVersion": "v1", "kind": "Pod",
        "metadata": {"name": "moved", "namespace": "web", "labels": pod["metadata"]["labels"]},
        "spec": {
            "nodeSelector": {"kubernetes.io/hostname": node},
            "containers": pod["spec"]["containers"].as_array().unwrap().iter().map(|container| {
                let mut container = container.clone();
                container.as_object_mut().unwrap().remove("volumeMounts");
                container
            }).collect::<Vec<_>>(),
        },
    });
    lab.apply(&moved.to_string()).await.unwrap();
    lab.kubectl(["-n", "web", "wait", "--for=condition=Ready", "pod/moved", "--timeout=60s"]).await.unwrap();
    for (policy, phase) in [("KeepLocal", "Open"), ("FallBack", "FellBack")] {
        let patch = json!({"spec": {"whenNoIngressEndpoint": policy}}).to_string();
        lab.kubectl(["patch", "isp", OBJECT, "--type=merge", "-p", &patch]).await.unwrap();
        scenario.wait_until_ready().await;
        lab.kubectl(["-n", "web", "label", "pod", "frontend", "app=away", "--overwrite"]).await.unwrap();
        lab.route(EXTERNAL.parse().unwrap(), &[node]).await.unwrap();
        let what = format!("{policy}: an external client is answered where the application runs");
        let target = format!("{EXTERNAL}:80");
        answers::until(lab, &what, &Place::Client, (Protocol::Http, &target), |answer| {
            answer.peer().is_some()
        })
        .await;
        until(&format!("{policy}: the Service is {phase}"), async || {
            let status = scenario.objects().get(OBJECT).await.unwrap().status.unwrap_or_default();
            let found: Vec<_> =
                status.services.iter().map(|service| format!("{:?}", service.state)).collect();
            if found.iter().any(|state| state == phase) { Ok(()) } else { Err(found) }
        })
        .await;
        lab.route(EXTERNAL.parse().unwrap(), &[EDGE]).await.unwrap();
        lab.kubectl(["-n", "web", "label", "pod", "frontend", "app=frontend", "--overwrite"]).await.unwrap();
        scenario.wait_until_ready().await;
        addresses::arrive(scenario).await;
    }
    lab.kubectl(["-n", "web", "delete", "pod", "moved", "--grace-period=1"]).await.unwrap();
}
