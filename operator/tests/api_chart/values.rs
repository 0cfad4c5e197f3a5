//! Valid values take effect, and invalid ones are rejected by name.

use isp_testkit::control_plane::SYSTEM;
use serde_json::{Value, json};

use crate::rendered::{object, objects, render};

fn rendered(values: &[&str]) -> Vec<Value> {
    objects(&render(values).unwrap())
}

fn pod(deployment: &Value) -> &Value {
    &deployment["spec"]["template"]["spec"]
}

#[test]
fn images_are_made_of_registry_name_and_tag_or_named_as_a_whole() {
    let images = |values: &[&str]| {
        let objects = rendered(values);
        let operator = object(&objects, "Deployment", "sourcepreserve-operator");
        let webhook = object(&objects, "Deployment", "sourcepreserve-webhook");
        let operator = &pod(&operator)["containers"][0];
        let webhook = &pod(&webhook)["containers"][0];
        let variable = |container: &Value, name: &str| {
            let set = container["env"].as_array().unwrap().iter().find(|set| set["name"] == name);
            set.unwrap()["value"].clone()
        };
        let (agent, redirect) = (variable(operator, "AGENT_IMAGE"), variable(webhook, "REDIRECT_IMAGE"));
        [&operator["image"], &webhook["image"], &agent, &redirect]
            .map(|image| image.as_str().unwrap().to_owned())
    };
    let elsewhere = [r#"image.registry="registry.example/isp""#, r#"image.tag="1.2.3""#];
    assert_eq!(
        images(&elsewhere),
        ["operator", "webhook", "proxy-agent", "pod-redirect"]
            .map(|name| format!("registry.example/isp/{name}:1.2.3"))
    );
    let whole = [
        r#"operator.image="one@sha256:0a""#,
        r#"webhook.image="two:2""#,
        r#"agent.image="three:3""#,
        r#"redirect.image="four:4""#,
        r#"image.tag="1.2.3""#,
    ];
    assert_eq!(images(&whole), ["one@sha256:0a", "two:2", "three:3", "four:4"]);
}

#[test]
fn each_program_has_its_own_settings() {
    let settings = json!({
        "replicas": 3,
        "logLevel": "debug",
        "logFormat": "text",
        "extraArgs": ["--admin=0.0.0.0:9000"],
        "resources": {"requests": {"cpu": "1"}},
        "nodeSelector": {"disk": "fast"},
        "tolerations": [{"key": "a", "operator": "Exists"}, {"key": "b", "value": "c", "effect": "NoSchedule"}],
        "priorityClassName": "system-cluster-critical",
        "podAnnotations": {"prometheus.io/scrape": "true"},
    });
    for (set, other) in [("operator", "webhook"), ("webhook", "operator")] {
        let objects = rendered(&[&format!("{set}={settings}"), r#"image.pullPolicy="Always""#]);
        let deployment = object(&objects, "Deployment", &format!("sourcepreserve-{set}"));
        assert_eq!(deployment["spec"]["replicas"], 3);
        let (pod, container) = (pod(&deployment), &pod(&deployment)["containers"][0]);
        let args = json!(["--log-format=text", "--log-level=debug", "run", "--admin=0.0.0.0:9000"]);
        assert_eq!(container["args"], args);
        assert_eq!(container["imagePullPolicy"], "Always");
        // Given values are merged into those of the values file.
        assert_eq!(
            container["resources"],
            json!({"requests": {"cpu": "1", "memory": "64Mi"}, "limits": {"memory": "128Mi"}})
        );
        for field in ["nodeSelector", "tolerations", "priorityClassName"] {
            assert_eq!(pod[field], settings[field]);
        }
        let metadata = &deployment["spec"]["template"]["metadata"];
        assert_eq!(metadata["annotations"], settings["podAnnotations"]);

        let untouched = object(&objects, "Deployment", &format!("sourcepreserve-{other}"));
        assert_eq!(
            (&untouched["spec"]["replicas"], &self::pod(&untouched)["tolerations"]),
            (&json!(2), &Value::Null)
        );
    }
}

#[test]
fn a_program_with_one_replica_has_no_budget_that_keeps_its_node_from_being_drained() {
    let count = |values: &[&str]| {
        rendered(values).iter().filter(|object| object["kind"] == "PodDisruptionBudget").count()
    };
    assert_eq!((count(&[]), count(&["operator.replicas=1"])), (2, 1));
    assert_eq!(count(&["operator.replicas=1", "webhook.replicas=1"]), 0);
}

#[test]
fn definitions_can_be_left_to_somebody_else() {
    let objects = rendered(&["crds.install=false"]);
    assert!(!objects.is_empty());
    assert!(objects.iter().all(|object| object["kind"] != "CustomResourceDefinition"));
}

#[test]
fn accounts_get_the_secrets_to_pull_with_also_the_agents() {
    let objects = rendered(&[r#"imagePullSecrets=[{"name":"pull"}]"#]);
    let accounts: Vec<_> = objects.iter().filter(|object| object["kind"] == "ServiceAccount").collect();
    assert_eq!(accounts.len(), 2);
    for account in accounts {
        assert_eq!(account["imagePullSecrets"], json!([{"name": "pull"}]), "{account}");
    }
    // The operator creates the agents' ServiceAccount.
    let operator = object(&objects, "Deployment", "sourcepreserve-operator");
    let variables = operator["spec"]["template"]["spec"]["containers"][0]["env"].as_array().unwrap();
    assert!(variables.contains(&json!({"name": "AGENT_PULL_SECRETS", "value": "pull"})), "{variables:?}");
}

#[test]
fn where_kube_proxy_runs_the_operators_rights_follow() {
    let objects = rendered(&[r#"kubeProxy.namespace="proxies""#]);
    let text = json!(objects).to_string();
    assert!(!text.contains("kube-system"), "{text}");
    let rights = objects.iter().filter(|object| object["kind"] == "Role");
    assert!(rights.into_iter().any(|role| role["metadata"]["namespace"] == "proxies"), "{text}");
    assert!(text.contains(SYSTEM));
}

#[test]
fn policies_know_the_api_servers_when_they_are_told_and_can_be_left_out() {
    let policies = |values: &[&str]| {
        let mut objects = rendered(values);
        objects.retain(|object| object["kind"] == "NetworkPolicy");
        objects
    };
    assert!(policies(&["networkPolicy.install=false"]).is_empty());
    let told = policies(&[r#"networkPolicy.apiServers=["10.0.0.10/32","fd00::/64"]"#]);
    let peers = json!([{"ipBlock": {"cidr": "10.0.0.10/32"}}, {"ipBlock": {"cidr": "fd00::/64"}}]);
    assert_eq!(told.len(), 2);
    for policy in &told {
        assert_eq!(policy["spec"]["policyTypes"], json!(["Ingress", "Egress"]));
        assert_eq!(policy["spec"]["egress"], json!([{"to": peers, "ports": [{"protocol": "TCP"}]}]));
    }
    let webhook = object(&told, "NetworkPolicy", "sourcepreserve-webhook");
    let admin = json!({"ports": [{"port": 8080}]});
    assert_eq!(webhook["spec"]["ingress"], json!([{"from": peers, "ports": [{"port": 8443}]}, admin]));
    let operator = object(&told, "NetworkPolicy", "sourcepreserve-operator");
    assert_eq!(operator["spec"]["ingress"], json!([admin]));
}

#[test]
fn a_pod_monitor_comes_when_it_is_asked_for_and_looks_where_the_programs_are() {
    let monitors = |values: &[&str]| {
        let mut objects = rendered(values);
        objects.retain(|object| object["kind"] == "PodMonitor");
        objects
    };
    assert!(monitors(&[]).is_empty());
    let asked = monitors(&[
        "podMonitor.install=true",
        r#"podMonitor.labels={"release":"prometheus"}"#,
        r#"kubeProxy.namespace="proxies""#,
    ]);
    let monitor = object(&asked, "PodMonitor", "sourcepreserve");
    assert_eq!(monitor["metadata"]["labels"]["release"], "prometheus");
    assert_eq!(monitor["spec"]["namespaceSelector"]["matchNames"], json!([SYSTEM, "proxies"]));
}

#[test]
fn the_webhook_answers_only_those_whose_authority_and_names_are_set() {
    let of = |values: &[&str]| object(&rendered(values), "Deployment", "sourcepreserve-webhook");
    let anybody = of(&[]);
    assert_eq!(pod(&anybody)["containers"][0]["args"], json!(["run"]));
    assert_eq!(
        (&pod(&anybody)["volumes"], &pod(&anybody)["containers"][0]["volumeMounts"]),
        (&Value::Null, &Value::Null)
    );
    let some = of(&[r#"webhook.callers={"configMap":"kube-root-ca.crt","names":["one","two"]}"#]);
    let args = json!(["run", "--client-ca=/client-ca/ca.crt", "--client-name=one", "--client-name=two"]);
    assert_eq!(pod(&some)["containers"][0]["args"], args);
    let volumes = json!([{"name": "client-ca", "configMap": {"name": "kube-root-ca.crt"}}]);
    assert_eq!(pod(&some)["volumes"], volumes);
    let mounts = json!([{"name": "client-ca", "mountPath": "/client-ca", "readOnly": true}]);
    assert_eq!(pod(&some)["containers"][0]["volumeMounts"], mounts);
}

#[test]
fn a_value_that_makes_no_sense_is_refused_by_its_name() {
    for (value, name) in [
        ("operator.replicas=-1", "/operator/replicas"),
        (r#"operator.replicas="two""#, "/operator/replicas"),
        (r#"operator.logLevel="a b""#, "/operator/logLevel"),
        (r#"webhook.logFormat="xml""#, "/webhook/logFormat"),
        ("webhook.replica=3", "'/webhook': additional properties 'replica'"),
        (r#"webhook.certificates="mine""#, "/webhook/certificates"),
        (r#"operator.certificates="own""#, "'/operator': additional properties 'certificates'"),
        ("image.tag=1", "/image/tag"),
        (r#"image.pullPolicy="Sometimes""#, "/image/pullPolicy"),
        (r#"image.registry="""#, "/image/registry"),
        ("operators={}", "operators"),
        (r#"operator.tolerations=[{"effects":"NoSchedule"}]"#, "effects"),
        (r#"kubeProxy.namespace="Kube_System""#, "/kubeProxy/namespace"),
        ("imagePullSecrets=[{}]", "/imagePullSecrets/0"),
        (r#"crds.install="no""#, "/crds/install"),
        (r#"networkPolicy.apiServers=["10.0.0.10"]"#, "/networkPolicy/apiServers/0"),
        // The cluster's CA signs certificates for more than API servers.
        (r#"webhook.callers.configMap="kube-root-ca.crt""#, "/webhook/callers/names"),
        (r#"podMonitor.install="yes""#, "/podMonitor/install"),
        ("networkPolicy.enabled=true", "'/networkPolicy': additional properties 'enabled'"),
    ] {
        let refused = render(&[value]).unwrap_err();
        assert!(refused.contains(name), "{value}: {refused}");
    }
}
