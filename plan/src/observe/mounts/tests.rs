use serde_json::{Value, json};

use super::*;

fn pod(volumes: &Value, mounts: &Value) -> PodSpec {
    let container = json!({"name": "kube-proxy", "volumeMounts": mounts});
    serde_json::from_value(json!({"containers": [container], "volumes": volumes})).unwrap()
}

fn config_map(volumes: &Value, mounts: &Value, path: &str) -> Option<(String, String)> {
    let pod = pod(volumes, mounts);
    let found = holding(&pod, &pod.containers[0], path)?;
    found.config_map().map(|(map, key)| (map.to_owned(), key.to_owned()))
}

#[test]
fn paths_are_compared_as_the_kernel_takes_them() {
    assert_eq!(components("/a//b/./c/"), Some(vec!["a", "b", "c"]));
    assert_eq!(components("/"), Some(vec![]));
    assert_eq!(components("a/b"), None, "nobody knows from where");
    assert_eq!(components("/a/../b"), None, "a link on the way would change what it means");
}

#[test]
fn a_file_is_found_through_each_way_to_mount_a_config_map() {
    let volume = json!([{"name": "v", "configMap": {"name": "settings"}}]);
    let items = json!([{"name": "v", "configMap": {"name": "settings", "items": [
        {"key": "proxy", "path": "etc/config.conf"}, {"key": "other", "path": "other"},
    ]}}]);
    let projected = json!([{"name": "v", "projected": {"sources": [
        {"serviceAccountToken": {"path": "token"}},
        {"configMap": {"name": "other", "items": [{"key": "x", "path": "x"}]}},
        {"configMap": {"name": "settings"}},
    ]}}]);
    let mount = |path: &str| json!([{"name": "v", "mountPath": path}]);
    let part = |path: &str, sub: &str| json!([{"name": "v", "mountPath": path, "subPath": sub}]);
    for (volumes, mounts, path, key) in [
        (&volume, mount("/var/lib/kube-proxy/"), "/var/lib/kube-proxy/config", Some("config")),
        (&volume, mount("/var/lib/kube-proxy"), "/var/lib//kube-proxy/./config", Some("config")),
        (&volume, mount("/var/lib/kube-proxy"), "/var/lib/kube-proxy-config/config", None),
        (&volume, mount("/var/lib"), "/var/lib/kube-proxy/config", None),
        (&volume, part("/etc/config.conf", "config"), "/etc/config.conf", Some("config")),
        (&items, mount("/var"), "/var/etc/config.conf", Some("proxy")),
        (&items, part("/here", "./etc/"), "/here/config.conf", Some("proxy")),
        (&items, mount("/var"), "/var/proxy", None),
        (&projected, mount("/var"), "/var/config", Some("config")),
    ] {
        let wanted = key.map(|key| ("settings".to_owned(), key.to_owned()));
        assert_eq!(config_map(volumes, &mounts, path), wanted, "{path} through {mounts}");
    }
    let expression = json!([{"name": "v", "mountPath": "/etc", "subPathExpr": "$(NODE)"}]);
    assert_eq!(config_map(&volume, &expression, "/etc/config"), None, "only the kubelet knows");
}

#[test]
fn the_innermost_mount_has_the_file() {
    let volumes = json!([
        {"name": "host", "hostPath": {"path": "/etc"}},
        {"name": "map", "configMap": {"name": "settings"}},
    ]);
    let mounts = json!([
        {"name": "map", "mountPath": "/etc/kubernetes/proxy"},
        {"name": "host", "mountPath": "/etc/"},
    ]);
    let pod = pod(&volumes, &mounts);
    let found = |path| holding(&pod, &pod.containers[0], path).map(|found| found.kind());
    assert_eq!(found("/etc/kubernetes/proxy/config"), Some("configMap"));
    assert_eq!(found("/etc/kubernetes/other"), Some("hostPath"));
    assert_eq!(found("/var"), None);
}
