//! Values for tests.

use isp_api::IngressSourcePreserve;
use serde_json::{Value, json};

use crate::node::report::ReportingAgent;

/// An object whose ingress nodes have the label `role: edge`, with further fields of its spec.
pub(crate) fn preserve(name: &str, further: Value) -> IngressSourcePreserve {
    let mut object = json!({
        "apiVersion": "sourcepreserve.io/v1alpha1",
        "kind": "IngressSourcePreserve",
        "metadata": {"name": name, "uid": format!("uid-{name}"), "generation": 3},
        "spec": {
            "ingressNodes": {"selector": {"matchLabels": {"role": "edge"}}},
            "services": [{"namespace": "n", "name": "s"}],
        },
    });
    if let (Value::Object(spec), Value::Object(further)) = (&mut object["spec"], further) {
        spec.extend(further);
    }
    serde_json::from_value(object).unwrap()
}

pub(crate) fn reporting_agent() -> ReportingAgent {
    ReportingAgent { node: "n".to_owned(), pool: "default".to_owned(), revision: String::new() }
}
