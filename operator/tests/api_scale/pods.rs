//! Many pods while an object has an entry with `redirect`, for which the operator watches all pods:
//! counts in the status, and memory. `ISP_SCALE_PODS` sets the number of pods of the large version.

use std::time::Duration;

use futures_util::{StreamExt, stream};
use isp_api::IngressSourcePreserve;
use isp_testkit::simulated::Cluster;
use isp_testkit::{Patience, until};
use kube::Api;
use serde_json::{Value, json};

use super::{AT_ONCE, memory};

/// The entry selects one pod in so many.
const ONE_IN: usize = 10;
const PODS_OF_AN_APPLICATION: usize = 20;

/// A pod of the usual size. It has no owner, because the garbage collector deletes pods whose owner
/// does not exist.
fn pod(number: usize) -> Value {
    let application = format!("application-{}", number / PODS_OF_AN_APPLICATION);
    let variables: Vec<Value> = (0..20)
        .map(|index| json!({"name": format!("SETTING_{index}"), "value": format!("https://{index}.{application}.example")}))
        .collect();
    let proxy = if number.is_multiple_of(ONE_IN) { "own" } else { "none" };
    json!({
        "apiVersion": "v1", "kind": "Pod",
        "metadata": {
            "name": format!("{application}-6d5f4c8b9-{number}"), "namespace": "web",
            "labels": {
                "app.kubernetes.io/name": application, "app.kubernetes.io/instance": "production",
                "app.kubernetes.io/managed-by": "Helm", "pod-template-hash": "6d5f4c8b9", "proxy": proxy,
            },
            "annotations": {"prometheus.io/scrape": "true", "checksum/config": "5f".repeat(32)},
        },
        "spec": {
            "automountServiceAccountToken": false,
            "containers": [
                {"name": "application", "image": "registry.example/application:1", "env": variables},
                {"name": "logs", "image": "registry.example/logs:1", "env": variables},
            ],
        },
    })
}

fn object() -> Value {
    json!({
        "ingressNodes": {"selector": {"matchLabels": {"ingress": ""}}},
        "services": [{"namespace": "web", "name": "frontend"}],
        "sidecars": [{
            "namespaceSelector": {"matchLabels": {"kubernetes.io/metadata.name": "web"}},
            "podSelector": {"matchLabels": {"proxy": "own"}},
            "redirect": {"inbound": {"method": "REDIRECT", "port": 15006}},
        }],
    })
}

#[tokio::test]
async fn many_pods_are_counted_while_an_object_has_a_redirect() {
    let pods = std::env::var("ISP_SCALE_PODS").map_or(200, |pods| pods.parse().unwrap());
    let mut cluster = Cluster::without_operator(env!("CARGO_BIN_EXE_operator")).await;
    cluster.namespace("web").await;
    let account = json!({"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": "default", "namespace": "web"}});
    cluster.server_side_apply(&account, "test").await;
    stream::iter(0..pods)
        .for_each_concurrent(AT_ONCE, async |number| {
            cluster.create(&pod(number), "kube-controller-manager").await;
        })
        .await;

    cluster.start_operator();
    until("the operator has read everything", async || cluster.operator().is_ready()).await;
    let floor = memory(cluster.operator().id(), "VmRSS");
    cluster.preserve("own-proxy", object()).await;
    let expected = u32::try_from(pods.div_ceil(ONE_IN)).unwrap();
    let objects: Api<IngressSourcePreserve> = Api::all(cluster.client.clone());
    Patience::of(Duration::from_mins(5))
        .until("all pods without the init container are counted", async || {
            let status = objects.get("own-proxy").await.unwrap().status.and_then(|status| status.sidecars);
            match status {
                Some(found) if (found.matching, found.stale) == (expected, expected) => Ok(()),
                other => Err(other),
            }
        })
        .await;
    let operator = cluster.operator().id();
    println!(
        "{pods} pods: {:.1} MB resident ({:.1} MB at the peak), of which {floor:.1} MB before the object",
        memory(operator, "VmRSS"),
        memory(operator, "VmHWM"),
    );
}
