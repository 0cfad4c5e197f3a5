#![allow(clippy::unwrap_used, clippy::panic, reason = "a test fails by panicking")]

use isp_api::Reason;
use k8s_openapi::api::core::v1::{ConfigMap, VolumeMount};
use serde::Deserialize;
use serde_json::Value;

use super::*;
use crate::cluster::Cluster;
use crate::observe;

/// The kube-proxy manifests of distributions, from the files that the lab uses.
const SHIPPED: [(&str, &str); 7] = [
    ("kubeadm", include_str!("../../../../lab/kube-proxy/kubeadm.yaml")),
    ("kubespray", include_str!("../../../../lab/kube-proxy/kubespray.yaml")),
    ("eks", include_str!("../../../../lab/kube-proxy/eks.yaml")),
    ("aks", include_str!("../../../../lab/kube-proxy/aks.yaml")),
    ("host-file", include_str!("../../../../lab/kube-proxy/host-file.yaml")),
    ("host-directory", include_str!("../../../../lab/kube-proxy/host-directory.yaml")),
    ("parts", include_str!("../../../../lab/kube-proxy/parts.yaml")),
];

fn cluster(name: &str, change: impl Fn(&mut Value)) -> Cluster {
    let (_, text) = SHIPPED.iter().find(|(shipped, _)| *shipped == name).unwrap();
    // The lab substitutes values for the @ markers; a YAML scalar cannot start with @.
    let text = text.replace('@', "");
    let mut cluster = Cluster::default();
    for document in serde_yaml::Deserializer::from_str(&text) {
        let mut object = Value::deserialize(document).unwrap();
        if object["kind"] == "ConfigMap" {
            let map: ConfigMap = serde_json::from_value(object).unwrap();
            cluster.configurations.insert(observe::key(&map.metadata), observe::configuration(&map));
        } else {
            change(&mut object["spec"]["template"]["spec"]);
            let set = observe::daemon_set(&serde_json::from_value(object).unwrap()).unwrap();
            cluster.daemon_sets.insert(observe::key(&set.object.metadata), set);
        }
    }
    cluster
}

/// kube-proxy's mounts of the agent's volume, the agent's mount of the original kubeconfig, and the
/// agent's arguments, or the problem.
fn made(cluster: &Cluster) -> Result<(Vec<VolumeMount>, VolumeMount, Vec<String>), Problem> {
    let (key, set) = observe::kube_proxy(&cluster.daemon_sets, None)?;
    let made = agents(&cluster.configurations, key, set, "agent:1", "default");
    let asked = accepted(&cluster.daemon_sets, &cluster.configurations);
    assert_eq!(asked.err().map(|refusal| refusal.message), made.as_ref().err().map(ToString::to_string));
    let pod = made?.spec.template.spec.unwrap();
    let mounts = pod.containers[0].volume_mounts.clone().unwrap();
    let agent = pod.init_containers.unwrap().pop().unwrap();
    let original = agent.volume_mounts.unwrap().remove(0);
    let ours = mounts.into_iter().filter(|mount| mount.name == "proxy-agent").collect();
    Ok((ours, original, agent.args.unwrap()))
}

fn refused(cluster: &Cluster) -> String {
    let problem = made(cluster).unwrap_err();
    assert_eq!(problem.reason(), Reason::KubeProxyUnusable);
    problem.to_string()
}

#[test]
fn an_agent_is_made_from_each_kube_proxy_that_can_be_led_to_it() {
    // Name, kubeconfig path, mount path of the agent's volume, its subPath, and the volume of the
    // original kubeconfig.
    for (name, kubeconfig, place, part, original) in [
        ("kubeadm", "/var/lib/kube-proxy/kubeconfig.conf", "/var/lib/kube-proxy", None, "kube-proxy"),
        ("kubespray", "/var/lib/kube-proxy/kubeconfig.conf", "/var/lib/kube-proxy", None, "kube-proxy"),
        ("eks", "/var/lib/kube-proxy/kubeconfig", "/var/lib/kube-proxy/", None, "kubeconfig"),
        (
            "host-file",
            "/var/lib/kube-proxy/kubeconfig",
            "/var/lib/kube-proxy/kubeconfig",
            Some("kubeconfig"),
            "kubeconfig",
        ),
        (
            "host-directory",
            "/var/lib/kube-proxy/kubeconfig",
            "/var/lib/kube-proxy/kubeconfig",
            Some("kubeconfig"),
            "kubeconfig",
        ),
        (
            "parts",
            "/etc/kubernetes/access.conf",
            "/etc/kubernetes/access.conf",
            Some("access.conf"),
            "access",
        ),
    ] {
        let (ours, read, arguments) =
            made(&cluster(name, |_| {})).unwrap_or_else(|error| panic!("{name}: {error}"));
        let [ours] = ours.as_slice() else { panic!("{name}: {ours:?}") };
        assert_eq!((ours.mount_path.as_str(), ours.sub_path.as_deref()), (place, part), "{name}");
        assert_eq!((read.name.as_str(), read.read_only), (original, Some(true)), "{name}");
        assert!(
            arguments.contains(&format!("--kube-proxy-kubeconfig={kubeconfig}")),
            "{name}: {arguments:?}"
        );
        // Other files are copied only if the agent's volume replaces a whole directory.
        assert_eq!(arguments.contains(&"--only-kubeconfig".to_owned()), part.is_some(), "{name}");
    }
}

#[test]
fn a_directory_of_the_node_stays_below_the_agents_kubeconfig() {
    let cluster = cluster("host-directory", |_| {});
    let (key, set) = observe::kube_proxy(&cluster.daemon_sets, None).unwrap();
    let made = agents(&cluster.configurations, key, set, "agent:1", "default");
    let pod = made.unwrap().spec.template.spec.unwrap();
    let mounts: Vec<_> =
        pod.containers[0].volume_mounts.iter().flatten().map(|mount| mount.mount_path.as_str()).collect();
    assert_eq!(mounts[0], "/var/lib/kube-proxy", "certificates beside it are found as before");
    assert_eq!(mounts.last(), Some(&"/var/lib/kube-proxy/kubeconfig"));
}

#[test]
fn in_cluster_configuration_is_refused_with_the_way_out() {
    let message = refused(&cluster("aks", |_| {}));
    for part in
        ["kube-system/kube-proxy", "container kube-proxy", "neither --config nor --kubeconfig", "ConfigMap"]
    {
        assert!(message.contains(part), "{part} is not in {message}");
    }
}

#[test]
fn what_cannot_be_read_or_replaced_is_refused_by_container_path_and_way_out() {
    type Change = fn(&mut Value);
    let cases: [(&str, Change, &[&str]); 8] = [
        (
            "host-directory",
            |pod| pod["containers"][0]["volumeMounts"][0]["subPathExpr"] = "$(NODE)".into(),
            &["/var/lib/kube-proxy/kubeconfig", "by subPathExpr", "use subPath"],
        ),
        (
            "eks",
            |pod| {
                pod["volumes"][4] =
                    serde_json::json!({"name": "config", "hostPath": {"path": "/etc/kube-proxy"}});
            },
            &["/var/lib/kube-proxy-config/config", "the hostPath volume config", "put it into a ConfigMap"],
        ),
        (
            "eks",
            |pod| pod["containers"][0]["command"][2] = "--config=/elsewhere/config".into(),
            &["/elsewhere/config", "no volume", "put it into a ConfigMap"],
        ),
        (
            "eks",
            |pod| pod["containers"][0]["command"][2] = "--config=/var/lib/kube-proxy-config/other".into(),
            &["kube-system/kube-proxy-config", "no file other", "clientConnection.kubeconfig"],
        ),
        (
            "host-file",
            |pod| pod["containers"][0]["args"][6] = "--kubeconfig=/root/.kube/config".into(),
            &["container kube-proxy", "/root/.kube/config", "no volume", "mount it from a ConfigMap"],
        ),
        (
            "host-file",
            |pod| pod["containers"][0]["args"][0] = "--master=https://127.0.0.1".into(),
            &["--master=https://127.0.0.1", "name the server in the kubeconfig"],
        ),
        (
            "parts",
            |pod| {
                pod["containers"][0]["volumeMounts"][0] =
                    serde_json::json!({"name": "access", "mountPath": "/etc"});
            },
            &[
                "/etc/kubernetes/access.conf",
                "a subdirectory of the configMap volume access",
                "at /etc/kubernetes",
            ],
        ),
        (
            "kubeadm",
            |pod| {
                let inside =
                    serde_json::json!({"name": "lib-modules", "mountPath": "/var/lib/kube-proxy/modules"});
                pod["containers"][0]["volumeMounts"][2] = inside;
            },
            &["a mount at /var/lib/kube-proxy/modules", "mount it elsewhere"],
        ),
    ];
    for (name, change, parts) in cases {
        let message = refused(&cluster(name, change));
        for part in parts {
            assert!(message.contains(part), "{name}: {part} is not in {message}");
        }
    }
}

#[test]
fn of_a_flag_that_is_given_twice_the_last_one_counts() {
    let twice = cluster("eks", |pod| pod["containers"][0]["command"][1] = "--config=/elsewhere".into());
    assert_eq!(made(&twice).unwrap().2[1], "--kube-proxy-kubeconfig=/var/lib/kube-proxy/kubeconfig");
}

#[test]
fn the_configuration_counts_and_not_the_flag_beside_it() {
    let both = cluster("eks", |pod| {
        pod["containers"][0]["command"][1] = "--kubeconfig=/var/lib/kube-proxy-config/other".into();
    });
    let (_, _, arguments) = made(&both).unwrap();
    assert_eq!(arguments[1], "--kube-proxy-kubeconfig=/var/lib/kube-proxy/kubeconfig");
}
