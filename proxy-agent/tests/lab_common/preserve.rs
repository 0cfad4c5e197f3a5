//! Preserves a Service as a user and the operator do, and releases it.

use std::path::Path;

use isp_api::IngressSourcePreserve;
use isp_lab::Lab;
use kube::Api;
use kube::api::{DeleteParams, PostParams};
use serde_json::json;

/// Installs the objects that an agent needs.
pub(crate) async fn install(lab: &Lab) {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap();
    for part in ["crds", "manifests/agent"] {
        lab.kubectl(["apply", "--server-side", "-f", root.join(part).to_str().unwrap()]).await.unwrap();
    }
}

pub(crate) async fn preserve(lab: &Lab, service: &str, elsewhere: &str) {
    let objects: Api<IngressSourcePreserve> = Api::all(lab.client());
    let object = serde_json::from_value(json!({
        "apiVersion": "sourcepreserve.io/v1alpha1",
        "kind": "IngressSourcePreserve",
        "metadata": {"name": service},
        "spec": {
            "ingressNodes": {"selector": {"matchLabels": {"node-role.kubernetes.io/ingress": ""}}},
            "services": [{"namespace": "default", "name": service}],
            "elsewhere": elsewhere,
        },
    }))
    .unwrap();
    objects.create(&PostParams::default(), &object).await.unwrap();
    let label = format!("sourcepreserve.io/preserve={service}");
    lab.kubectl(["label", "service", service, &label]).await.unwrap();
}

pub(crate) async fn forget(lab: &Lab, service: &str) {
    lab.kubectl(["label", "service", service, "sourcepreserve.io/preserve-"]).await.unwrap();
    let objects: Api<IngressSourcePreserve> = Api::all(lab.client());
    objects.delete(service, &DeleteParams::default()).await.unwrap();
}
