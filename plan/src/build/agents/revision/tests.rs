#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use serde_json::json;

use super::*;
use crate::build::fixtures::agents;

#[test]
fn a_revision_runs_where_both_labels_are_and_is_never_replaced_in_place() {
    let set = of_revision(agents(&json!(["kube-proxy"])), "0123456789");
    let set = serde_json::to_value(set).unwrap();
    assert_eq!(set["metadata"]["name"], "proxy-agent-workers-0123456789");
    assert_eq!(
        set["spec"]["updateStrategy"],
        json!({"type": "OnDelete"}),
        "a surge would find the agent's port taken"
    );
    let selector =
        json!({"sourcepreserve.io/agent-pool": "workers", "sourcepreserve.io/agent-revision": "0123456789"});
    assert_eq!(set["spec"]["template"]["spec"]["nodeSelector"], selector);
    let labels = &set["spec"]["template"]["metadata"]["labels"];
    assert_eq!(&set["spec"]["selector"]["matchLabels"], labels);
    assert_eq!(labels["sourcepreserve.io/agent-revision"], "0123456789");
    let environment = &set["spec"]["template"]["spec"]["initContainers"][0]["env"];
    assert_eq!(environment, &json!([{"name": "AGENT_REVISION", "value": "0123456789"}]));
}
