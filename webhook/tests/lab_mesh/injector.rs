//! The table of decisions against Istio's own injector and this webhook, both at work: every pod is tried, none is kept.

use std::collections::BTreeMap;

use k8s_openapi::api::core::v1::Pod;
use kube::Api;
use kube::api::PostParams;
use serde::Deserialize;
use serde_json::json;

use super::harness::{Scenario, eventually};

const MODE: &str = "sidecar.istio.io/interceptionMode";

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Row {
    name: String,
    namespace_name: Option<String>,
    #[serde(default)]
    namespace: BTreeMap<String, String>,
    #[serde(default)]
    labels: BTreeMap<String, String>,
    #[serde(default)]
    annotations: BTreeMap<String, String>,
    host_network: Option<bool>,
    expect: String,
    injector: Option<String>,
}

pub(crate) async fn decides_as_the_table_says(scenario: &Scenario) {
    let rows: Vec<Row> = serde_yaml::from_str(include_str!("../../../api/tests/sidecars.yaml")).unwrap();
    let (mut asked, mut wrong) = (0, Vec::new());
    for (index, row) in rows.iter().enumerate().filter(|(_, row)| row.injector.as_deref() != Some("skip")) {
        let namespace = row.namespace_name.clone().unwrap_or_else(|| format!("row-{index}"));
        make_namespace(scenario, &namespace, &row.namespace).await;
        let pod = create(scenario, &namespace, row).await;
        asked += 1;
        let annotations = pod.metadata.annotations.clone().unwrap_or_default();
        let injected = annotations.contains_key("sidecar.istio.io/status");
        let expected = !["NotInjected", "HostNetwork", "ExcludedNamespace"].contains(&row.expect.as_str());
        let mode = annotations.get(MODE).map(String::as_str);
        let expected_mode =
            if row.expect == "Set" { Some("TPROXY") } else { row.annotations.get(MODE).map(String::as_str) };
        if injected != expected || mode != expected_mode {
            wrong.push(format!(
                "{}: injected {injected}, mode {mode:?}; expected {expected}, {expected_mode:?}",
                row.name
            ));
        }
        if row.expect == "Set" {
            let sidecar = isp_api::sidecar::Sidecar::of(&pod);
            assert!(
                sidecar.is_some_and(|sidecar| sidecar.proxy == "TPROXY"),
                "{}: too late for the injector",
                row.name
            );
        }
    }
    println!("the injector was asked about {asked} pods of {}", rows.len());
    assert!(asked >= 50);
    assert_eq!(wrong, Vec::<String>::new());
}

async fn make_namespace(scenario: &Scenario, name: &str, labels: &BTreeMap<String, String>) {
    let mut labels = labels.clone();
    labels.entry("team".to_owned()).or_insert_with(|| "shop".to_owned());
    let namespace =
        json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name, "labels": labels}});
    scenario.lab.apply(&namespace.to_string()).await.unwrap();
}

/// What would be created. The namespace's ServiceAccount comes a moment after it.
async fn create(scenario: &Scenario, namespace: &str, row: &Row) -> Pod {
    let pods: Api<Pod> = Api::namespaced(scenario.lab.client(), namespace);
    let pod = serde_json::from_value(json!({
        "metadata": {"name": "pod", "labels": row.labels, "annotations": row.annotations},
        "spec": {"hostNetwork": row.host_network, "containers": [{"name": "app", "image": "none"}]},
    }))
    .unwrap();
    let tried = PostParams { dry_run: true, ..PostParams::default() };
    let mut created = None;
    eventually(&format!("{} can be tried", row.name), async || {
        created = pods.create(&tried, &pod).await.ok();
        created.is_some()
    })
    .await;
    created.unwrap()
}
