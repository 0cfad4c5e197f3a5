//! The table: each row makes one change to a valid object.

use serde_json::{Value, json};

/// One change to a valid object, and the expected error.
pub(super) struct Bad {
    /// A JSON pointer to the changed value.
    pub(super) at: &'static str,
    pub(super) to: Value,
    /// The field path in the message.
    pub(super) field: &'static str,
    /// An excerpt of the message.
    pub(super) says: &'static str,
}

pub(super) fn bad(at: &'static str, to: Value, field: &'static str, says: &'static str) -> Bad {
    Bad { at, to, field, says }
}

pub(super) const SERVICES: &str = "/spec/services";
const SERVICE: &str = "/spec/services/0";
const INGRESS: &str = "/spec/ingressNodes/selector";
const EXPRESSIONS: &str = "/spec/ingressNodes/selector/matchExpressions";
const EXPRESSION: &str = "spec.ingressNodes.selector.matchExpressions[0]";

pub(super) fn what_is_asked_for() -> Vec<Bad> {
    vec![
        bad("/metadata/name", json!("n".repeat(64)), "metadata.name", "may not be more than 63"),
        bad("/spec/ingressNodes", Value::Null, "spec.ingressNodes", "Required value"),
        bad("/spec/ingressNodes", json!({}), "spec.ingressNodes.selector", "Required value"),
        bad(SERVICES, Value::Null, "spec.services", "Required value"),
        bad(SERVICES, json!([]), "spec.services", "at least 1 items"),
        bad(SERVICES, json!([{ "name": "web" }]), "spec.services[0].namespace", "Required value"),
        bad(SERVICES, many_services(65), "spec.services", "must have at most 64 items"),
        bad(
            SERVICES,
            json!([{ "namespace": "a", "name": "b" }, { "namespace": "a", "name": "b" }]),
            "spec.services",
            "an entry is listed twice: remove one of the two",
        ),
        bad(
            SERVICE,
            json!({ "namespace": "shop" }),
            "spec.services[0]",
            "the entry for namespace \"shop\" has neither a name nor a selector: give one of them",
        ),
        bad(
            SERVICE,
            json!({ "namespace": "shop", "name": "web", "selector": { "matchLabels": { "a": "b" } } }),
            "spec.services[0]",
            "the entry for namespace \"shop\" has a name and a selector: remove one of them",
        ),
        bad(
            SERVICE,
            json!({ "namespace": "shop", "selector": {} }),
            "spec.services[0].selector",
            "an empty selector would select everything",
        ),
        bad(
            "/spec/services/0/namespace",
            json!("Shop"),
            "spec.services[0].namespace",
            "\"Shop\" is not a DNS label",
        ),
        bad(
            "/spec/services/0/namespace",
            json!("a.b"),
            "spec.services[0].namespace",
            "\"a.b\" is not a DNS label",
        ),
        bad("/spec/services/0/name", json!("web-"), "spec.services[0].name", "\"web-\" is not a DNS label"),
        bad(
            "/spec/services/0/name",
            json!("w".repeat(64)),
            "spec.services[0].name",
            "may not be more than 63",
        ),
        bad("/spec/services/0/name", json!(""), "spec.services[0].name", "should be at least 1 chars long"),
        bad(
            "/spec/mode",
            json!("Beside"),
            "spec.nodePools",
            "mode Beside has no pools, because its agents run on every node: remove pool \"workers\"",
        ),
        bad("/spec/mode", json!("Replace"), "spec.mode", "supported values: \"Filter\", \"Beside\""),
        bad(
            "/spec/elsewhere",
            json!("Carry"),
            "spec.elsewhere",
            "supported values: \"ClusterOnly\", \"Hidden\"",
        ),
        bad(
            "/spec/whenNoIngressEndpoint",
            json!("Panic"),
            "spec.whenNoIngressEndpoint",
            "\"KeepLocal\", \"FallBack\"",
        ),
        bad("/spec/conflictPolicy", json!("Fight"), "spec.conflictPolicy", "\"Report\", \"Force\""),
        bad("/spec/deletionPolicy", json!("Forget"), "spec.deletionPolicy", "\"Restore\", \"Retain\""),
    ]
}

pub(super) fn selectors() -> Vec<Bad> {
    let expression = |value: Value| json!([value]);
    vec![
        bad(INGRESS, json!({}), "spec.ingressNodes.selector", "give at least one label in matchLabels"),
        bad(
            INGRESS,
            json!({ "matchLabels": {}, "matchExpressions": [] }),
            "spec.ingressNodes.selector",
            "an empty selector would select everything",
        ),
        bad(
            "/spec/ingressNodes/selector/matchLabels",
            json!({ "a/b/c": "x" }),
            "spec.ingressNodes.selector.matchLabels",
            "\"a/b/c\" is not a label key: use [prefix/]name",
        ),
        bad(
            "/spec/ingressNodes/selector/matchLabels/role",
            json!("an edge"),
            "spec.ingressNodes.selector.matchLabels[role]",
            "\"an edge\" is not a label value",
        ),
        bad(
            EXPRESSIONS,
            expression(json!({ "key": "a", "operator": "Gt", "values": ["1"] })),
            "spec.ingressNodes.selector.matchExpressions[0].operator",
            "supported values: \"In\", \"NotIn\", \"Exists\", \"DoesNotExist\"",
        ),
        bad(
            EXPRESSIONS,
            expression(json!({ "key": "a", "operator": "In" })),
            EXPRESSION,
            "label \"a\": In and NotIn need at least one entry in values",
        ),
        bad(
            EXPRESSIONS,
            expression(json!({ "key": "a", "operator": "NotIn", "values": [] })),
            EXPRESSION,
            "label \"a\": In and NotIn need at least one entry in values",
        ),
        bad(
            EXPRESSIONS,
            expression(json!({ "key": "a", "operator": "Exists", "values": ["b"] })),
            EXPRESSION,
            "label \"a\": Exists and DoesNotExist check only the key: remove values",
        ),
        bad(
            EXPRESSIONS,
            expression(json!({ "key": "", "operator": "Exists" })),
            "spec.ingressNodes.selector.matchExpressions[0].key",
            "\"\" is not a label key",
        ),
        bad(
            EXPRESSIONS,
            expression(json!({ "key": "a", "operator": "In", "values": ["b c"] })),
            "spec.ingressNodes.selector.matchExpressions[0].values[0]",
            "should match",
        ),
    ]
}

pub(super) fn pools_and_rollout() -> Vec<Bad> {
    let pool = |name: &str| json!({ "name": name, "selector": {} });
    vec![
        bad(
            "/spec/nodePools",
            json!([pool("a"), pool("a")]),
            "spec.nodePools[1]",
            "Duplicate value: {\"name\":\"a\"}",
        ),
        bad(
            "/spec/nodePools/0/name",
            json!("Workers"),
            "spec.nodePools[0].name",
            "\"Workers\" is not a DNS label",
        ),
        bad(
            "/spec/nodePools/0/name",
            json!("p".repeat(51)),
            "spec.nodePools[0].name",
            "may not be more than 50",
        ),
        bad("/spec/nodePools/0/selector", Value::Null, "spec.nodePools[0].selector", "Required value"),
        bad(
            "/spec/nodePools/0/mode",
            json!("Replace"),
            "spec.nodePools[0].mode",
            "supported values: \"Filter\", \"Beside\"",
        ),
        bad(
            "/spec/nodePools",
            json!([pool("a"), { "name": "b", "selector": {}, "mode": "Beside" }]),
            "spec.nodePools[1].mode",
            "\"Beside\" is not a mode of a pool: the mode is chosen for the whole object",
        ),
        bad(
            "/spec/rollout/maxUnavailable",
            json!(0),
            "spec.rollout.maxUnavailable",
            "\"0\" is not a valid number of nodes",
        ),
        bad(
            "/spec/rollout/maxUnavailable",
            json!("0%"),
            "spec.rollout.maxUnavailable",
            "\"0%\" is not a valid number of nodes",
        ),
        bad(
            "/spec/rollout/maxUnavailable",
            json!(-3),
            "spec.rollout.maxUnavailable",
            "a number from 1 to 65535",
        ),
        bad(
            "/spec/rollout/maxUnavailable",
            json!("101%"),
            "spec.rollout.maxUnavailable",
            "from \"1%\" to \"100%\"",
        ),
        bad(
            "/spec/rollout/maxUnavailable",
            json!("all"),
            "spec.rollout.maxUnavailable",
            "to stop the rollout, use paused",
        ),
        bad(
            "/spec/rollout/progressDeadlineSeconds",
            json!(29),
            "spec.rollout.progressDeadlineSeconds",
            "greater than or equal to 30",
        ),
        bad(
            "/spec/rollout/progressDeadlineSeconds",
            json!(86_401),
            "spec.rollout.progressDeadlineSeconds",
            "less than or equal to 86400",
        ),
        bad("/spec/rollout/onFailure", json!("Retry"), "spec.rollout.onFailure", "\"RollBack\", \"Pause\""),
        bad("/spec/rollout/paused", json!("yes"), "spec.rollout.paused", "must be of type boolean"),
    ]
}

pub(super) fn the_rest() -> Vec<Bad> {
    vec![
        bad(
            "/spec/sidecars/0/namespaceSelector",
            Value::Null,
            "spec.sidecars[0].namespaceSelector",
            "Required value",
        ),
        bad(
            "/spec/sidecars/0/namespaceSelector",
            json!({}),
            "spec.sidecars[0].namespaceSelector",
            "an empty selector would select everything",
        ),
        bad(
            "/spec/sidecars/0/interceptionMode",
            json!("REDIRECT"),
            "spec.sidecars[0].interceptionMode",
            "\"TPROXY\"",
        ),
        bad(
            "/spec/serviceLabel/key",
            json!("not a key"),
            "spec.serviceLabel.key",
            "\"not a key\" is not a label key",
        ),
        bad(
            "/spec/serviceLabel/key",
            json!("service.kubernetes.io/service-proxy-name"),
            "spec.serviceLabel.key",
            "makes every kube-proxy skip the Service, on the ingress nodes too",
        ),
        bad(
            "/spec/serviceLabel/key",
            json!("service.kubernetes.io/headless"),
            "spec.serviceLabel.key",
            "\"service.kubernetes.io/headless\" makes every kube-proxy skip",
        ),
        bad(
            "/spec/serviceLabel/value",
            json!("-x"),
            "spec.serviceLabel.value",
            "\"-x\" is not a label value",
        ),
        bad(
            "/spec/serviceLabel/value",
            json!(""),
            "spec.serviceLabel.value",
            "should be at least 1 chars long",
        ),
        bad("/spec/kubeProxy/namespace", Value::Null, "spec.kubeProxy.namespace", "Required value"),
        bad(
            "/spec/kubeProxy/namespace",
            json!("Kube"),
            "spec.kubeProxy.namespace",
            "\"Kube\" is not a DNS label",
        ),
        bad(
            "/spec/kubeProxy/daemonSet",
            json!("kube_proxy"),
            "spec.kubeProxy.daemonSet",
            "\"kube_proxy\" is not a DNS name",
        ),
    ]
}

pub(super) fn many_services(count: usize) -> Value {
    (0..count).map(|index| json!({ "namespace": "a", "name": format!("s{index}") })).collect()
}
