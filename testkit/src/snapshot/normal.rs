//! Objects without the fields that change by themselves. Pure.

use serde_json::{Value, json};

/// The DaemonSet controller counts the changes of the template here.
const TEMPLATE_CHANGES: &str = "deprecated.daemonset.template.generation";

/// An object without resource version, generation, the times in `managedFields` and the order that
/// depends on them, and without its status unless it is kept.
pub fn comparable(mut object: Value, keeps_status: bool) -> Value {
    let fields = object.as_object_mut().unwrap();
    if !keeps_status {
        fields.remove("status");
    }
    let metadata = fields["metadata"].as_object_mut().unwrap();
    metadata.remove("resourceVersion");
    metadata.remove("generation");
    if let Some(annotations) = metadata.get_mut("annotations") {
        forget_template_changes(annotations);
    }
    if let Some(managed) = metadata.get_mut("managedFields").and_then(Value::as_array_mut) {
        managed.retain(|entry| keeps_status || entry["subresource"] != "status");
        for entry in managed.iter_mut() {
            entry.as_object_mut().unwrap().remove("time");
        }
        managed.sort_by_key(ToString::to_string);
    }
    object
}

/// The name, labels, annotations and spec of an object.
pub fn declared(object: &Value) -> Value {
    let metadata = &object["metadata"];
    let mut annotations = metadata["annotations"].clone();
    forget_template_changes(&mut annotations);
    json!({
        "name": metadata["name"], "labels": metadata["labels"], "annotations": annotations, "spec": object["spec"],
    })
}

fn forget_template_changes(annotations: &mut Value) {
    if let Some(annotations) = annotations.as_object_mut() {
        annotations.remove(TEMPLATE_CHANGES);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn daemon_set(version: &str, time: &str, changes: &str) -> Value {
        json!({
            "metadata": {
                "name": "a", "resourceVersion": version, "annotations": {TEMPLATE_CHANGES: changes, "own": "x"},
                "managedFields": [
                    {"manager": "one", "time": time},
                    {"manager": "controller", "subresource": "status", "time": time},
                ],
            },
            "spec": {"a": 1}, "status": {"numberReady": version},
        })
    }

    #[test]
    fn fields_that_change_by_themselves_are_not_compared_and_all_others_are() {
        let (one, other) = (daemon_set("1", "then", "1"), daemon_set("2", "now", "2"));
        assert_eq!(comparable(one.clone(), false), comparable(other.clone(), false));
        assert_ne!(comparable(one.clone(), true), comparable(other.clone(), true), "the status differs");
        assert_eq!(declared(&one), declared(&other));
        for path in ["/metadata/annotations/own", "/spec/a"] {
            let mut changed = one.clone();
            *changed.pointer_mut(path).unwrap() = json!("changed");
            assert_ne!(comparable(changed.clone(), false), comparable(one.clone(), false), "{path}");
            assert_ne!(declared(&changed), declared(&one), "{path}");
        }
        let mut taken = one.clone();
        taken["metadata"]["managedFields"][0]["manager"] = json!("another");
        assert_ne!(comparable(taken.clone(), false), comparable(one.clone(), false), "ownership counts");
        assert_eq!(declared(&taken), declared(&one), "ownership is not declared");
    }
}
