//! Redirects that the API server rejects. Each message names the field, the value and the way out.

use isp_api::IngressSourcePreserve;
use isp_api::preserve::InterceptionMode;
use kube::Api;
use kube::api::{DeleteParams, Patch, PatchParams};
use serde_json::{Value, json};

use crate::client;
use crate::rejected::create;

use self::table::{Bad, exemptions, inbound, outbound, the_entry};

mod table;

/// An object with one entry, which has every field of a redirect that fits the others.
fn good() -> Value {
    json!({
        "apiVersion": "sourcepreserve.io/v1alpha1",
        "kind": "IngressSourcePreserve",
        "metadata": { "name": "redirects" },
        "spec": {
            "ingressNodes": { "selector": { "matchLabels": { "role": "edge" } } },
            "services": [{ "namespace": "shop", "name": "web" }],
            "sidecars": [{
                "namespaceSelector": { "matchLabels": { "team": "shop" } },
                "redirect": {
                    "inbound": { "method": "TPROXY", "port": 15006, "exceptPorts": [9090] },
                    "outbound": {
                        "port": 15001, "destinations": ["10.0.0.0/8", "2001:db8::/32", "192.0.2.1"], "ports": [80, 443],
                        "exceptDestinations": ["10.1.0.0/16"],
                    },
                    "exempt": { "uids": [1337], "gids": [1337], "marks": [1], "cgroup": { "path": "proxy/envoy" } },
                    "initOrder": "Last",
                },
            }],
        },
    })
}

/// The valid object with one change to its entry; null removes the value.
fn changed(Bad { at, to, .. }: &Bad) -> Value {
    let mut object = good();
    let path = format!("/spec/sidecars/0{at}");
    let (parent, last) = path.rsplit_once('/').unwrap();
    match object.pointer_mut(parent) {
        Some(Value::Object(fields)) if to.is_null() => _ = fields.remove(last),
        Some(Value::Object(fields)) => _ = fields.insert(last.to_owned(), to.clone()),
        other => panic!("{at} does not lead to a field of {other:?}"),
    }
    object
}

#[tokio::test]
async fn redirects_in_every_form_are_accepted() {
    create(good()).await.unwrap();
    let redirect = |redirect: Value| Bad { at: "/redirect", to: redirect, field: "", value: "", way_out: "" };
    let most: Vec<String> =
        (0..32).map(|index| format!("2001:db8:1111:2222:3333:4444:{index:x}:0/112")).collect();
    for accepted in [
        json!({ "inbound": { "method": "REDIRECT", "port": 1 } }),
        json!({ "inbound": { "method": "REDIRECT", "port": 65535, "ports": [8080] } }),
        json!({ "outbound": { "port": 15001 }, "exempt": { "uids": [0] } }),
        json!({ "outbound": { "port": 15001 }, "exempt": { "gids": [2_147_483_647] } }),
        json!({ "outbound": { "port": 15001 }, "exempt": { "marks": [4_294_967_295_u32] } }),
        json!({ "outbound": { "port": 15001 }, "exempt": { "cgroup": { "classId": 1_048_577 } } }),
        json!({ "outbound": { "port": 15001, "destinations": most } }),
        json!({ "outbound": { "port": 15001, "destinations": ["0.0.0.0/0"] }, "exempt": { "uids": [1] } }),
    ] {
        create(changed(&redirect(accepted.clone())))
            .await
            .unwrap_or_else(|error| panic!("{accepted}: {error}"));
    }
}

#[tokio::test]
async fn each_bad_redirect_is_refused_with_field_value_and_way_out() {
    let table: Vec<Bad> = [the_entry(), inbound(), outbound(), exemptions()].into_iter().flatten().collect();
    assert!(table.len() >= 40, "{}", table.len());
    let mut wrong = Vec::new();
    for case in &table {
        let field = format!("spec.sidecars[0]{}: ", case.field);
        match create(changed(case)).await {
            Ok(()) => wrong.push(format!("{} = {} was accepted", case.at, case.to)),
            Err(said) if [&*field, case.value, case.way_out].iter().all(|part| said.contains(part)) => {}
            Err(said) => wrong.push(format!("{} = {} got: {said}", case.at, case.to)),
        }
    }
    assert!(wrong.is_empty(), "{} of {}:\n{}", wrong.len(), table.len(), wrong.join("\n"));
}

#[tokio::test]
async fn an_entry_from_before_there_were_redirects_stays_valid_and_as_it_is() {
    let api: Api<IngressSourcePreserve> = Api::all(client().await);
    let mut object = good();
    object["metadata"]["name"] = json!("from-before");
    // The default was stored with every entry.
    object["spec"]["sidecars"] = json!([{
        "namespaceSelector": { "matchLabels": { "team": "shop" } },
        "podSelector": {}, "interceptionMode": "TPROXY", "via": "Webhook",
    }]);
    let apply = PatchParams::apply("test");
    let stored = api.patch("from-before", &apply, &Patch::Apply(&object)).await.unwrap();
    let label = json!({ "metadata": { "labels": { "a": "b" } } });
    let touched = api.patch("from-before", &PatchParams::default(), &Patch::Merge(&label)).await.unwrap();
    assert_eq!((&stored.spec, stored.metadata.generation), (&touched.spec, touched.metadata.generation));
    assert_eq!(touched.spec.sidecars[0].interception_mode, Some(InterceptionMode::Tproxy));
    object["spec"]["sidecars"][0].as_object_mut().unwrap().remove("interceptionMode");
    let unset = api.patch("from-before", &apply, &Patch::Apply(&object)).await.unwrap();
    assert_eq!(
        unset.spec.sidecars[0].interception_mode(),
        Some(InterceptionMode::Tproxy),
        "it means the same"
    );
    api.delete("from-before", &DeleteParams::default()).await.unwrap();
}
