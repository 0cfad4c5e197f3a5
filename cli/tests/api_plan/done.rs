//! What the operator did. The API server's audit log says what was written, and when; the
//! operator's own log says which action each write was, for the audit log has no contents. A write
//! is decided on what the last one to its object has left, so an object's writes and its actions
//! are in the same order.

use std::collections::{BTreeMap, VecDeque};

use isp_lab::Request;
use isp_plan::action::without_revision;
use serde_json::Value;

use crate::planned::Step;

const OPERATOR: &str = "system:serviceaccount:sourcepreserve-system:sourcepreserve-operator";
const WRITES: [&str; 5] = ["create", "update", "patch", "delete", "deletecollection"];
/// What is said, and who leads.
const ASIDE: [&str; 3] = ["ingresssourcepreserves/status", "events", "leases"];
/// Decided on a state that had changed meanwhile; decided again then.
const STALE: u16 = 409;

/// The writes among these requests that changed what the plan is about.
pub(crate) fn writes(requests: &[Request]) -> Vec<&Request> {
    let writes = requests.iter().filter(|request| {
        request.user == OPERATOR
            && WRITES.contains(&request.verb.as_str())
            && !ASIDE.contains(&request.resource.as_str())
            && request.code != STALE
    });
    writes.collect()
}

/// The actions that these writes were, by the operator's log.
pub(crate) fn steps(writes: &[&Request], log: &str) -> Vec<Step> {
    let mut actions: BTreeMap<(String, String), VecDeque<Step>> = BTreeMap::new();
    for (action, target) in logged(log) {
        let (kind, object) = target.split_once('/').unwrap();
        let step = Step { action, object: without_revision(object).to_owned() };
        actions.entry((plural(kind), object.to_owned())).or_default().push_back(step);
    }
    let steps = writes.iter().map(|write| {
        assert!((200..300).contains(&write.code), "the operator was refused: {write:?}");
        let name = write.name.clone().unwrap();
        let object = match &write.namespace {
            Some(namespace) => format!("{namespace}/{name}"),
            None => name,
        };
        let step = actions.get_mut(&(write.resource.clone(), object)).and_then(VecDeque::pop_front);
        let step =
            step.unwrap_or_else(|| panic!("the operator does not say why it wrote this: {write:?}\n{log}"));
        assert_eq!(write.verb == "delete", deletes(&step.action), "{step:?} is no {}", write.verb);
        step
    });
    let steps = steps.collect();
    actions.retain(|_, left| !left.is_empty());
    assert!(actions.is_empty(), "the operator says that it wrote what was not written: {actions:?}");
    steps
}

/// Actions that were done, and to what, in their order.
fn logged(log: &str) -> impl Iterator<Item = (String, String)> {
    let lines = log.lines().filter_map(|line| serde_json::from_str::<Value>(line).ok());
    lines
        .filter(|line| line["message"] == "done" && line["action"] != "write-status")
        .filter_map(|line| Some((line["action"].as_str()?.to_owned(), line["object"].as_str()?.to_owned())))
}

fn deletes(action: &str) -> bool {
    ["delete-", "unbind-", "forget-"].iter().any(|begin| action.starts_with(begin))
}

/// A kind as a resource.
fn plural(kind: &str) -> String {
    kind.strip_suffix('y').map_or_else(|| format!("{kind}s"), |kind| format!("{kind}ies"))
}
