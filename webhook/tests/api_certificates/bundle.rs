//! The CA bundle in the configuration.

use isp_testkit::until;
use isp_testkit::webhook::{CONFIGURATION, Cluster, Replica};
use k8s_openapi::api::admissionregistration::v1::ValidatingWebhookConfiguration;
use kube::api::{DeleteParams, Patch, PatchParams};
use serde_json::{Value, json};

use crate::PROGRAM;
use crate::caller::{call, certificates};

/// The configuration without fields that change with the bundle.
fn apart_from_the_bundle(configuration: &ValidatingWebhookConfiguration) -> Value {
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
async fn it_is_kept_in_a_configuration_that_comes_and_goes_and_nothing_else_is_touched() {
    let cluster = Cluster::start(PROGRAM).await;
    let configurations = cluster.configurations();
    let mut made = configurations.get(CONFIGURATION).await.unwrap();
    let mut replica = Replica::start(&cluster, &["--overlap=2s"]);
    let writes = |outcome: &str| {
        let name = format!("isp_webhook_ca_bundle_writes_total{{outcome=\"{outcome}\"}}");
        replica.metric(&name).unwrap_or_default()
    };
    replica.wait_ready().await;
    until("the bundle", async || !cluster.bundle().await.is_empty()).await;
    let bundle = cluster.bundle().await;
    call(replica.address, &bundle).await.unwrap();

    // Twice, with a new object each time.
    for _ in 0..2 {
        let now = configurations.get(CONFIGURATION).await.unwrap();
        assert_eq!(apart_from_the_bundle(&now), apart_from_the_bundle(&made));
        let managers: Vec<_> =
            now.metadata.managed_fields.unwrap().into_iter().filter_map(|entry| entry.manager).collect();
        assert_eq!(managers, ["kubectl", "sourcepreserve-webhook"]);
        // Applying the manifest again changes nothing.
        cluster.install().await;
        assert_eq!(cluster.bundle().await, bundle);

        configurations.delete(CONFIGURATION, &DeleteParams::default()).await.unwrap();
        tokio::time::sleep(std::time::Duration::from_secs(2)).await;
        assert!(configurations.get_opt(CONFIGURATION).await.unwrap().is_none(), "it is not made");
        cluster.install().await;
        made = configurations.get(CONFIGURATION).await.unwrap();
        until("the bundle of the new one", async || cluster.bundle().await == bundle).await;
    }

    // If someone overwrites the bundle, missing CAs are added back at once, and foreign ones are
    // removed later.
    let foreign = rcgen::generate_simple_self_signed(vec!["other".to_owned()]).unwrap().cert;
    let spoilt = json!({
        "apiVersion": "admissionregistration.k8s.io/v1", "kind": "ValidatingWebhookConfiguration", "metadata": {"name": CONFIGURATION},
        "webhooks": [{"name": "objects.sourcepreserve.io", "clientConfig": {"caBundle": k8s_openapi::ByteString(foreign.pem().into_bytes())}}],
    });
    let somebody = PatchParams::apply("somebody").force();
    configurations.patch(CONFIGURATION, &somebody, &Patch::Apply(&spoilt)).await.unwrap();
    until("both", async || certificates(&cluster.bundle().await).len() == 2).await;
    call(replica.address, &cluster.bundle().await).await.unwrap();
    until("its own alone", async || cluster.bundle().await == bundle).await;

    assert_eq!(writes("Done").to_bits(), 5f64.to_bits(), "one for each object, with the other, without");
    assert_eq!(writes("Failed").to_bits(), 0f64.to_bits());
    assert!(replica.end(), "{}", replica.log());
}
