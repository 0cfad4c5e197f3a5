//! Objects that the API server rejects. Each message names the field, and the problem or its fix.

use isp_api::IngressSourcePreserve;
use kube::{
    Api,
    api::{DeleteParams, DynamicObject, Patch, PatchParams, PostParams},
    core::ApiResource,
};
use serde_json::{Value, json};

use self::table::{
    Bad, SERVICES, bad, many_services, pools_and_rollout, selectors, the_rest, what_is_asked_for,
};
use crate::{client, control_plane};

mod table;

fn good() -> Value {
    json!({
        "apiVersion": "sourcepreserve.io/v1alpha1",
        "kind": "IngressSourcePreserve",
        "metadata": { "name": "good" },
        "spec": {
            "ingressNodes": { "selector": { "matchLabels": { "role": "edge" } } },
            "services": [{ "namespace": "istio-system", "name": "istio-ingressgateway" }],
            "nodePools": [{ "name": "workers", "selector": { "matchLabels": { "pool": "workers" } }, "mode": "Filter" }],
            "rollout": { "maxUnavailable": "10%" },
            "sidecars": [{ "namespaceSelector": { "matchLabels": { "istio-injection": "enabled" } } }],
            "serviceLabel": { "key": "example.com/preserve", "value": "good" },
            "kubeProxy": { "namespace": "kube-system", "daemonSet": "kube-proxy" },
        },
    })
}

/// The valid object with one change; null removes the value.
fn changed(Bad { at, to, .. }: &Bad) -> Value {
    let mut object = good();
    let (parent, last) = at.rsplit_once('/').unwrap();
    match object.pointer_mut(parent).unwrap() {
        Value::Object(fields) if to.is_null() => _ = fields.remove(last),
        Value::Object(fields) => _ = fields.insert(last.to_owned(), to.clone()),
        Value::Array(items) => items[last.parse::<usize>().unwrap()] = to.clone(),
        _ => panic!("{at} does not lead to a field"),
    }
    object
}

/// Creates the object by dry run.
pub(crate) async fn create(object: Value) -> Result<(), String> {
    let api: Api<DynamicObject> =
        Api::all_with(client().await, &ApiResource::erase::<IngressSourcePreserve>(&()));
    let object: DynamicObject = serde_json::from_value(object).unwrap();
    let dry_run = PostParams { dry_run: true, ..PostParams::default() };
    match api.create(&dry_run, &object).await {
        Ok(_) => Ok(()),
        Err(kube::Error::Api(status)) => Err(status.message.clone()),
        Err(other) => panic!("{other}"),
    }
}

#[tokio::test]
async fn a_good_object_is_accepted() {
    create(good()).await.unwrap();
    create(changed(&bad(SERVICES, many_services(64), "", ""))).await.unwrap();
    create(changed(&bad("/metadata/name", json!("n".repeat(63)), "", ""))).await.unwrap();
    create(changed(&bad("/spec/rollout/maxUnavailable", json!("100%"), "", ""))).await.unwrap();
}

#[tokio::test]
async fn each_bad_object_is_refused_with_a_message_that_names_the_field() {
    let table: Vec<Bad> =
        [what_is_asked_for(), selectors(), pools_and_rollout(), the_rest()].into_iter().flatten().collect();
    assert!(table.len() >= 50, "{}", table.len());
    let mut wrong = Vec::new();
    for case in &table {
        match create(changed(case)).await {
            Ok(()) => wrong.push(format!("{} = {} was accepted", case.at, case.to)),
            Err(message) if message.contains(&format!("{}: ", case.field)) && message.contains(case.says) => {
            }
            Err(message) => wrong.push(format!("{} = {} got: {message}", case.at, case.to)),
        }
    }
    assert!(wrong.is_empty(), "{} of {}:\n{}", wrong.len(), table.len(), wrong.join("\n"));
}

#[tokio::test]
async fn the_label_cannot_be_changed_while_services_carry_it() {
    let api: Api<IngressSourcePreserve> = Api::all(client().await);
    let mut object = good();
    object["metadata"]["name"] = json!("keeps-its-label");
    object["spec"].as_object_mut().unwrap().remove("serviceLabel");
    let apply = PatchParams::apply("test");
    api.patch("keeps-its-label", &apply, &Patch::Apply(&object)).await.unwrap();

    object["spec"]["elsewhere"] = json!("Hidden");
    api.patch("keeps-its-label", &apply, &Patch::Apply(&object)).await.unwrap();
    for label in [json!({ "key": "example.com/other" }), json!({ "value": "other" })] {
        object["spec"]["serviceLabel"] = label;
        let error =
            api.patch("keeps-its-label", &apply, &Patch::Apply(&object)).await.unwrap_err().to_string();
        assert!(error.contains("spec.serviceLabel: "), "{error}");
        assert!(error.contains("delete the object and create it again"), "{error}");
    }
    api.delete("keeps-its-label", &DeleteParams::default()).await.unwrap();
}

#[tokio::test]
async fn kubectl_refuses_a_field_that_there_is_not() {
    let mut object = good();
    object["spec"]["elsewher"] = json!("Hidden");
    let arguments = ["create", "--dry-run=server", "-f", "-"];
    let output = control_plane().await.kubectl_with_input(&arguments, &object.to_string()).await.unwrap();
    assert!(
        !output.success && output.stderr.contains("unknown field \"spec.elsewher\""),
        "{}",
        output.stderr
    );
}
