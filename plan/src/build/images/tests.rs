#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use serde_json::json;

use super::*;
use crate::build::fixtures::agents;

#[test]
fn images_are_pulled_by_pods_that_do_nothing() {
    for (command, expected) in [
        (json!(["/usr/local/bin/kube-proxy", "--config=/x"]), Some(json!(["/usr/local/bin/kube-proxy"]))),
        (json!(null), Some(json!(null))),
        (json!(["/bin/sh", "-c", "exec kube-proxy"]), None),
    ] {
        let set = images_of(&agents(&command), "workers", "0123456789");
        let set = serde_json::to_value(set).unwrap();
        let pod = &set["spec"]["template"]["spec"];
        assert_eq!(pod["nodeSelector"], json!({"sourcepreserve.io/agent-images": "0123456789"}));
        assert_eq!(pod["automountServiceAccountToken"], json!(false));
        assert_eq!(pod["containers"][0]["image"], "agent:1");
        assert_eq!(pod["containers"][0]["args"], json!(["hold"]));
        assert_eq!(pod["containers"][0]["securityContext"]["capabilities"]["drop"], json!(["ALL"]));
        match expected {
            Some(command) => {
                assert_eq!(pod["initContainers"][0]["image"], "kube-proxy:1");
                assert_eq!(pod["initContainers"][0]["command"], command);
                assert_eq!(pod["initContainers"][0]["args"], json!(["--version"]));
            }
            None => assert_eq!(pod["initContainers"], json!(null)),
        }
    }
}
