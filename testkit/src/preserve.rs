//! Preserves a Service as a user and the operator do, without an operator, and releases it.

use isp_api::IngressSourcePreserve;
use isp_lab::Lab;
use kube::Api;
use kube::api::{DeleteParams, PostParams};
use serde_json::json;

use crate::repository;

/// Installs the objects that an agent needs.
pub async fn install(lab: &Lab) {
    for part in ["crds", "manifests/agent"] {
        lab.kubectl(["apply", "--server-side", "-f", &repository::path(part)]).await.unwrap();
    }
}

/// An object for a Service in the namespace `default`, with the name of the Service.
pub fn object(service: &str, elsewhere: &str) -> IngressSourcePreserve {
    serde_json::from_value(json!({
        "apiVersion": "sourcepreserve.io/v1alpha1",
        "kind": "IngressSourcePreserve",
        "metadata": {"name": service},
        "spec": {
            "ingressNodes": {"selector": {"matchLabels": {"node-role.kubernetes.io/ingress": ""}}},
            "services": [{"namespace": "default", "name": service}],
            "elsewhere": elsewhere,
        },
    }))
    .unwrap()
}

/// Creates an object for a Service, and labels the Service.
pub async fn preserve(lab: &Lab, service: &str, elsewhere: &str) {
    let objects: Api<IngressSourcePreserve> = Api::all(lab.client());
    objects.create(&PostParams::default(), &object(service, elsewhere)).await.unwrap();
    let label = format!("sourcepreserve.io/preserve={service}");
    lab.kubectl(["label", "service", service, &label]).await.unwrap();
}

/// Removes the label and the object.
pub async fn forget(lab: &Lab, service: &str) {
    lab.kubectl(["label", "service", service, "sourcepreserve.io/preserve-"]).await.unwrap();
    let objects: Api<IngressSourcePreserve> = Api::all(lab.client());
    objects.delete(service, &DeleteParams::default()).await.unwrap();
}
