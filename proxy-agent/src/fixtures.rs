//! Values for tests.

use std::collections::BTreeMap;
use std::sync::Arc;

use isp_api::IngressSourcePreserve;
use isp_api::validate::NodeIdentity;
use isp_api::view::{Narrowing, view};
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

/// Services with `a=1` are `ClusterOnly`, those with `b=2` are `Hidden`.
pub(crate) fn narrowing() -> Arc<Narrowing> {
    let object = |name: &str, key: &str, value: &str, elsewhere: &str| {
        preserve(name, json!({"serviceLabel": {"key": key, "value": value}, "elsewhere": elsewhere}))
    };
    let objects = [object("one", "a", "1", "ClusterOnly"), object("two", "b", "2", "Hidden")];
    Arc::new(view(NodeIdentity { name: "n", labels: &BTreeMap::new() }, &objects).narrowing)
}
