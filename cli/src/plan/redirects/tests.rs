#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::sync::Arc;

use isp_plan::{Key, observe};
use serde_json::{Value, json};

use super::*;

fn object(redirect: &Value) -> IngressSourcePreserve {
    serde_json::from_value(json!({
        "apiVersion": "sourcepreserve.io/v1alpha1", "kind": "IngressSourcePreserve", "metadata": {"name": "web"},
        "spec": {
            "ingressNodes": {"selector": {"matchLabels": {"ingress": ""}}},
            "services": [{"namespace": "web", "name": "frontend"}],
            "sidecars": [
                {"namespaceSelector": {"matchLabels": {"team": "mesh"}}},
                {"namespaceSelector": {"matchLabels": {"team": "shop"}}, "podSelector": {"matchLabels": {"proxy": "own"}}, "redirect": redirect},
            ],
        },
    }))
    .unwrap()
}

#[test]
fn what_pods_get_is_told_in_words() {
    let told = redirects(&object(&json!({
        "inbound": {"method": "TPROXY", "port": 15006, "exceptPorts": [9090]},
        "outbound": {"port": 15001, "destinations": ["10.0.0.0/8"], "ports": [80, 443], "exceptDestinations": ["10.1.0.0/16"]},
        "exempt": {"uids": [1337], "gids": [7], "marks": [1], "cgroup": {"path": "proxy"}},
    })));
    assert_eq!(told.len(), 1, "the other entry is Istio's");
    assert_eq!(told[0].entry, "spec.sidecars[1]");
    assert_eq!(
        told[0].description,
        [
            "new pods with proxy=own in namespaces with team=shop get init container pod-redirect, which runs before their other init \
             containers, may write packet rules of the pod (NET_ADMIN) and ends",
            "TCP connections to all ports except 9090 of the pod go to its proxy on port 15006, by TPROXY; the proxy must listen \
             transparently, for which its container needs NET_RAW or NET_ADMIN",
            "TCP connections of the pod to ports 80, 443 of 10.0.0.0/8 except 10.1.0.0/16 go to its proxy on port 15001",
            "except those of the proxy: user 1337 or group 7 or socket mark 1 or cgroup proxy",
        ]
    );
    let named = redirects(&object(&json!({
        "inbound": {"method": "REDIRECT", "port": 15006, "ports": [8080]},
        "outbound": {"port": 15001, "destinations": ["192.0.2.1"]},
        "initOrder": "Last",
    })));
    let text = named[0].description.join("\n");
    for part in [
        "after their other init containers",
        "to port 8080 of the pod",
        "by REDIRECT",
        "must not connect to these destinations",
    ] {
        assert!(text.contains(part), "{part}: {text}");
    }
}

#[test]
fn pods_that_exist_are_counted_with_the_way_to_recreate_them() {
    let redirect = json!({"inbound": {"method": "REDIRECT", "port": 15006}});
    let mut cluster = Cluster::default();
    cluster.objects.insert("web".to_owned(), object(&redirect));
    cluster.namespaces.insert("shop".to_owned(), Arc::new([("team".to_owned(), "shop".to_owned())].into()));
    let pod = |name: &str, owner: &str, proxy: &str| {
        let owners = json!([{"apiVersion": "apps/v1", "kind": "StatefulSet", "name": owner, "uid": "u", "controller": true}]);
        let metadata =
            json!({"name": name, "namespace": "shop", "labels": {"proxy": proxy}, "ownerReferences": owners});
        let pod = json!({"metadata": metadata, "spec": {"containers": [{"name": "app"}]}});
        observe::redirect_pod(&serde_json::from_value(pod).unwrap()).unwrap()
    };
    for (name, owner, proxy) in
        [("a-0", "a", "own"), ("a-1", "a", "own"), ("b-0", "b", "own"), ("c-0", "c", "none")]
    {
        cluster.redirects.insert(Key::new("shop", name), pod(name, owner, proxy));
    }
    let (_, existing) = of(&cluster, "sourcepreserve-system", "web");
    assert_eq!(
        existing.unwrap().sentence(),
        "3 pods that exist get it when they are recreated: kubectl rollout restart -n shop statefulset/a (and 1 more)"
    );
    cluster.redirects.clear();
    assert!(of(&cluster, "sourcepreserve-system", "web").1.is_none());
    assert!(of(&cluster, "sourcepreserve-system", "another").0.is_empty());
}
