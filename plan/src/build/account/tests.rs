#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use serde::Deserialize;

use super::*;

#[test]
fn the_operator_makes_the_objects_that_manifests_agent_installs_by_hand() {
    let files = [
        include_str!("../../../../manifests/agent/rbac.yaml"),
        include_str!("../../../../manifests/agent/own-node.yaml"),
    ];
    let installed: BTreeSet<String> = files
        .into_iter()
        .flat_map(serde_yaml::Deserializer::from_str)
        .map(|document| Value::deserialize(document).unwrap().to_string())
        .collect();
    let made: BTreeSet<String> = wanted(&["kube-system".to_owned()].into(), &[])
        .into_values()
        .map(|mut object| {
            object["metadata"].as_object_mut().unwrap().remove("labels");
            object.to_string()
        })
        .collect();
    assert_eq!(made.len(), 6);
    assert_eq!(made, installed);
}

#[test]
fn agents_of_several_namespaces_share_what_is_cluster_wide() {
    let objects = wanted(&["kube-system".to_owned(), "proxies".to_owned()].into(), &["pull".to_owned()]);
    assert_eq!(objects.len(), 7);
    let account = &objects[&(OwnKind::Account, Key::new("proxies", AGENT_NAME))];
    assert_eq!(account["imagePullSecrets"], json!([{"name": "pull"}]));
    let binding = &objects[&(OwnKind::RoleBinding, Key::new("", NODE_PROXIER_BINDING))];
    assert_eq!(binding["subjects"][1]["namespace"], "proxies");
    let policy = &objects[&(OwnKind::AgentPolicy, Key::new("", AGENT_POLICY))];
    assert_eq!(
        policy["spec"]["matchConditions"][0]["expression"],
        "request.userInfo.username in ['system:serviceaccount:kube-system:proxy-agent', \
         'system:serviceaccount:proxies:proxy-agent']"
    );
}
