//! Checks the decision table against Istio's own injector and this webhook together, with dry-run
//! pods.

use isp_testkit::sidecars::tried::{make_namespace, try_pod};
use isp_testkit::sidecars::{MODE, rows};
use serde_json::json;

use super::harness::Scenario;

pub(crate) async fn decides_as_the_table_says(scenario: &Scenario) {
    let (client, rows) = (scenario.lab.client(), rows());
    let (mut asked, mut wrong) = (0, Vec::new());
    for (index, row) in rows.iter().enumerate().filter(|(_, row)| row.injector.as_deref() != Some("skip")) {
        let namespace = make_namespace(&client, index, row).await;
        let spec = json!({"containers": [{"name": "app", "image": "none"}]});
        let pod = try_pod(&client, &namespace, row, spec).await;
        asked += 1;
        let annotations = pod.metadata.annotations.clone().unwrap_or_default();
        let injected = annotations.contains_key("sidecar.istio.io/status");
        let expected = !["NotInjected", "HostNetwork", "ExcludedNamespace"].contains(&row.expect.as_str());
        let (mode, expected_mode) = (annotations.get(MODE).map(String::as_str), row.mode());
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
