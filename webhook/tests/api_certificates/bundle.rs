//! The bundle in the configurations.

use kube::api::{Patch, PatchParams};
use serde_json::{Value, json};

use crate::caller::{call, certificates};
use crate::harness::{Cluster, OBJECTS, PODS, Replica, until};

/// The configuration without what changes when the bundle does.
fn apart_from_the_bundle(configuration: &impl serde::Serialize) -> Value {
    let mut value = json!(configuration);
    for field in ["resourceVersion", "generation"] {
        value["metadata"].as_object_mut().unwrap().remove(field);
    }
    let managed = value["metadata"]["managedFields"].as_array_mut().unwrap();
    managed.retain(|entry| entry["manager"] != "sourcepreserve-webhook");
    value["webhooks"][0]["clientConfig"].as_object_mut().unwrap().remove("caBundle");
    value
}

#[tokio::test]
async fn it_is_kept_in_configurations_as_they_come_and_go_and_nothing_else_is_touched() {
    let cluster = Cluster::start().await;
    let objects = cluster.objects().get(OBJECTS).await.unwrap();
    let mut replica = Replica::start(&cluster, &["--overlap=2s"]);
    let writes = |configuration: &str, outcome: &str| {
        let labels = format!("{{configuration=\"{configuration}\",outcome=\"{outcome}\"}}");
        replica.metric(&format!("isp_webhook_ca_bundle_writes_total{labels}")).unwrap_or_default()
    };
    replica.wait_ready().await;
    until("the bundle for objects", async || !cluster.bundles().await[1].is_empty()).await;
    let [pods, bundle] = cluster.bundles().await;
    call(replica.address, &bundle).await.unwrap();
    let now = cluster.objects().get(OBJECTS).await.unwrap();
    assert_eq!(apart_from_the_bundle(&now), apart_from_the_bundle(&objects));
    assert!(pods.is_empty() && cluster.pods().get_opt(PODS).await.unwrap().is_none(), "it is not made");

    // Twice, as another object each time.
    for _ in 0..2 {
        cluster.make_configuration_for_pods().await;
        let made = cluster.pods().get(PODS).await.unwrap();
        until("the bundle for pods", async || cluster.bundles().await[0] == bundle).await;
        let now = cluster.pods().get(PODS).await.unwrap();
        assert_eq!(apart_from_the_bundle(&now), apart_from_the_bundle(&made));
        let managers: Vec<_> =
            now.metadata.managed_fields.unwrap().into_iter().filter_map(|entry| entry.manager).collect();
        assert_eq!(managers, ["sourcepreserve-operator", "sourcepreserve-webhook"]);
        // Its owner applies it again, which changes nothing.
        cluster.make_configuration_for_pods().await;
        assert_eq!(cluster.bundles().await[0], bundle);
        cluster.delete_configuration_for_pods().await;
    }

    // Whoever spoils it: what is needed comes back at once, and what is not goes later.
    let foreign = rcgen::generate_simple_self_signed(vec!["other".to_owned()]).unwrap().cert;
    let spoilt = json!({
        "apiVersion": "admissionregistration.k8s.io/v1", "kind": "ValidatingWebhookConfiguration", "metadata": {"name": OBJECTS},
        "webhooks": [{"name": "objects.sourcepreserve.io", "clientConfig": {"caBundle": k8s_openapi::ByteString(foreign.pem().into_bytes())}}],
    });
    let somebody = PatchParams::apply("somebody").force();
    cluster.objects().patch(OBJECTS, &somebody, &Patch::Apply(&spoilt)).await.unwrap();
    until("both", async || certificates(&cluster.bundles().await[1]).len() == 2).await;
    call(replica.address, &cluster.bundles().await[1]).await.unwrap();
    until("its own alone", async || cluster.bundles().await[1] == bundle).await;

    assert_eq!(writes(PODS, "Done").to_bits(), 2f64.to_bits(), "one for each object");
    assert_eq!(writes(OBJECTS, "Done").to_bits(), 3f64.to_bits(), "at first, with the other, without");
    assert_eq!(writes(OBJECTS, "Failed").to_bits(), 0f64.to_bits());
    assert!(replica.end(), "{}", replica.log());
}
