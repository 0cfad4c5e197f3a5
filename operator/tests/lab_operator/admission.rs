//! The admission objects that the operator creates.

use isp_testkit::web_lab::{OBJECT, WebLab};
use isp_testkit::{admission, until};
use serde_json::json;

/// With an entry of each kind, both objects are created. Removing an entry removes its object.
pub(crate) async fn follows_the_entries(scenario: &WebLab) {
    let lab = &scenario.lab;
    let entry =
        |team: &str, via: &str| json!({"namespaceSelector": {"matchLabels": {"team": team}}, "via": via});
    let webhook = "webhook 0-sourcepreserve.io".to_owned();
    let policy = [0, 1].map(|place| {
        [
            format!("policy sourcepreserve.{OBJECT}.{place}"),
            format!("binding sourcepreserve.{OBJECT}.{place}"),
        ]
    });
    for (entries, expected) in [
        (
            json!([entry("a", "Webhook"), entry("b", "Policy")]),
            [vec![webhook.clone()], policy[1].to_vec()].concat(),
        ),
        (json!([entry("b", "Policy")]), policy[0].to_vec()),
        (json!([entry("a", "Webhook"), entry("c", "Policy")]), [vec![webhook], policy[1].to_vec()].concat()),
    ] {
        let patch = json!({"spec": {"sidecars": entries}}).to_string();
        lab.kubectl(["patch", "isp", OBJECT, "--type=merge", "-p", &patch]).await.unwrap();
        until("the entries have their objects", async || {
            let names = admission::names(lab.client()).await;
            if names == expected { Ok(()) } else { Err(names) }
        })
        .await;
    }
}
