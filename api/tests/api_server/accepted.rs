//! Objects that the API server accepts, and the defaults that it sets.

use std::fs;

use isp_api::IngressSourcePreserve;
use kube::{
    Api,
    api::{DeleteParams, DynamicObject, Patch, PatchParams},
    core::ApiResource,
};
use serde_json::{Value, json};

use crate::{client, control_plane, kubectl};

#[tokio::test]
async fn every_sample_is_accepted_and_can_be_read() {
    let samples = isp_testkit::repository::file("manifests/samples");
    let mut count = 0;
    for entry in fs::read_dir(&samples).unwrap() {
        let path = entry.unwrap().path().display().to_string();
        let said =
            kubectl(control_plane().await, &["create", "--dry-run=server", "--validate=strict", "-f", &path])
                .await;
        assert!(!said.contains("Warning"), "{path}: {said}");
        for document in serde_yaml::Deserializer::from_str(&fs::read_to_string(&path).unwrap()) {
            let value = <Value as serde::Deserialize>::deserialize(document).unwrap();
            serde_json::from_value::<IngressSourcePreserve>(value).unwrap();
            count += 1;
        }
    }
    assert!(count >= 7, "{count} samples");
}

#[tokio::test]
async fn the_server_fills_in_the_defaults() {
    let api: Api<DynamicObject> =
        Api::all_with(client().await, &ApiResource::erase::<IngressSourcePreserve>(&()));
    let minimal = json!({
        "apiVersion": "sourcepreserve.io/v1alpha1",
        "kind": "IngressSourcePreserve",
        "metadata": { "name": "defaults" },
        "spec": {
            "ingressNodes": { "selector": { "matchLabels": { "role": "edge" } } },
            "services": [{ "namespace": "a", "name": "b" }],
            // Templates render an unset value as null.
            "mode": null,
            "rollout": { "maxUnavailable": 2 },
            "sidecars": [{ "namespaceSelector": { "matchLabels": { "istio-injection": "enabled" } } }],
        },
    });
    let apply = PatchParams::apply("test");
    let created = api.patch("defaults", &apply, &Patch::Apply(&minimal)).await.unwrap();
    let expected = json!({
        "ingressNodes": { "selector": { "matchLabels": { "role": "edge" } } },
        "services": [{ "namespace": "a", "name": "b" }],
        "mode": "Filter",
        "elsewhere": "ClusterOnly",
        "rollout": { "maxUnavailable": 2, "paused": false, "progressDeadlineSeconds": 600, "onFailure": "RollBack" },
        "sidecars": [{
            "namespaceSelector": { "matchLabels": { "istio-injection": "enabled" } },
            "podSelector": {},
            "via": "Webhook",
        }],
        "serviceLabel": { "key": "sourcepreserve.io/preserve" },
        "whenNoIngressEndpoint": "KeepLocal",
        "conflictPolicy": "Report",
        "deletionPolicy": "Restore",
    });
    assert_eq!(created.data["spec"], expected);

    let again = api.patch("defaults", &apply, &Patch::Apply(&minimal)).await.unwrap();
    assert_eq!(
        again.metadata.resource_version, created.metadata.resource_version,
        "applying again changes nothing"
    );
    api.delete("defaults", &DeleteParams::default()).await.unwrap();
}

#[tokio::test]
async fn without_a_rollout_it_is_the_default_one() {
    let api: Api<IngressSourcePreserve> = Api::all(client().await);
    let object = json!({
        "apiVersion": "sourcepreserve.io/v1alpha1",
        "kind": "IngressSourcePreserve",
        "metadata": { "name": "default-rollout" },
        "spec": {
            "ingressNodes": { "selector": { "matchLabels": { "role": "edge" } } },
            "services": [{ "namespace": "a", "name": "b" }],
        },
    });
    let parameters = PatchParams { dry_run: true, ..PatchParams::apply("test") };
    let created = api.patch("default-rollout", &parameters, &Patch::Apply(&object)).await.unwrap();
    // The API server's defaults equal those of the types.
    assert_eq!(created.spec, serde_json::from_value(object["spec"].clone()).unwrap());
    assert_eq!(created.spec.rollout.max_unavailable.to_string(), "10%");
}
