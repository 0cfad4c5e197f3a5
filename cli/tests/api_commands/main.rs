//! Every command against a real API server: what it reads, what it says, and what it ends with.

#![allow(clippy::unwrap_used, clippy::panic, reason = "helpers of tests fail as tests do")]

mod cluster;

use std::io::{BufRead, BufReader, Write};
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::time::Duration;

use isp_lab::{ControlPlane, docs};
use serde_json::{Value, json};

use self::cluster::{Ended, SPEC, apply, cluster, command, end, ended, file, kubectl, set_status, typed};

const MANUAL: &str = "docs/kubectl-isp.md";

#[tokio::test]
async fn without_the_definitions_the_way_to_install_them_is_told() {
    let (_, bare) = cluster().await;
    let Ended { code, stdout, stderr } = bare;
    assert_eq!((*code, stdout.as_str()), (Some(1), ""));
    assert!(stderr.contains("kubectl apply --server-side -k manifests/overlays/default"), "{stderr}");
}

fn object(name: &str) -> Value {
    let spec: Value = serde_yaml::from_str(SPEC).unwrap();
    json!({
        "apiVersion": "sourcepreserve.io/v1alpha1",
        "kind": "IngressSourcePreserve",
        // Held already, so that a plan has nothing to do for it.
        "metadata": {"name": name, "finalizers": ["sourcepreserve.io/restore"]},
        "spec": spec,
    })
}

fn condition(type_: &str, status: &str, message: &str) -> Value {
    json!({
        "type": type_, "status": status, "reason": "Because", "message": message,
        "lastTransitionTime": "2026-01-01T00:00:00Z",
    })
}

fn ready(services: &Value) -> Value {
    json!({
        "observedGeneration": 1, "phase": "Ready", "services": services,
        "conditions": [condition("Ready", "True", "all is well"), condition("Checked", "True", "")],
        "nodePools": [{"name": "default", "nodes": 2, "handedOver": 2, "ready": 2, "failed": 0}],
    })
}

#[tokio::test]
async fn status_tells_what_was_written_and_ends_with_how_it_is() {
    let (control_plane, _) = cluster().await;
    let config = control_plane.kubeconfig();
    let [on_its_way, in_trouble] =
        docs::commands(MANUAL, "status_tells_what_was_written_and_ends_with_how_it_is").unwrap();
    for name in ["web", "status-new"] {
        apply(control_plane, &object(name)).await;
    }
    let services = json!([{
        "namespace": "web", "name": "frontend", "state": "Preserved", "ingressEndpoints": 1, "addresses": ["192.0.2.10"],
    }]);
    set_status(control_plane, "isp", "web", &ready(&services)).await;

    let told = end(command(&config, &typed(&on_its_way))).await;
    assert_eq!((told.code, told.stderr.as_str()), (Some(0), ""));
    assert_eq!(
        told.stdout,
        "\
web: Ready, all is well
  steps      1 of 5 done: Checked; left: AgentsReady, Labelled, Acknowledged, LocalPolicySet
  services   web/frontend  Preserved, 192.0.2.10, 1 endpoint on ingress nodes
  nodes      pool default: 2 nodes, 2 handed over, 2 ready
"
    );

    let told = end(command(&config, &["status"])).await;
    assert_eq!(told.code, Some(2), "one of them is not ready: {told:?}");
    assert!(
        told.stdout
            .contains("status-new: Unknown\n  waits for  the operator, which has not looked at it yet\n")
    );

    let told = end(command(&config, &["status", "web", "-o", "json"])).await;
    let list: Value = serde_json::from_str(&told.stdout).unwrap();
    assert_eq!(
        (told.code, &list["kind"], list["items"].as_array().unwrap().len()),
        (Some(0), &json!("List"), 1)
    );
    assert_eq!(list["items"][0]["status"]["services"], services);
    let told = end(command(&config, &["status", "status-new", "-o", "yaml"])).await;
    let list: Value = serde_yaml::from_str(&told.stdout).unwrap();
    assert_eq!((told.code, &list["items"][0]["metadata"]["name"]), (Some(2), &json!("status-new")));
    assert_eq!(list["items"][0]["metadata"]["managedFields"], Value::Null);

    let trouble =
        json!({"phase": "Degraded", "conditions": [condition("Ready", "False", "an agent is missing")]});
    set_status(control_plane, "isp", "web", &trouble).await;
    let told = end(command(&config, &typed(&in_trouble))).await;
    assert_eq!(told.code, Some(2), "{told:?}");
    assert!(
        told.stdout.starts_with("web: Degraded\n") && told.stdout.contains("an agent is missing"),
        "{told:?}"
    );

    let told = end(command(&config, &["status", "nobody"])).await;
    assert_eq!(told.code, Some(1));
    assert!(
        told.stderr.contains("there is no IngressSourcePreserve \"nobody\"; there are: "),
        "{}",
        told.stderr
    );
}

#[tokio::test]
async fn a_plan_is_told_step_by_step_and_nothing_is_written() {
    let (control_plane, _) = cluster().await;
    let (config, directory) = (control_plane.kubeconfig(), tempfile::tempdir().unwrap());
    let specs = [
        "get",
        "services,daemonsets",
        "-A",
        "-o",
        "custom-columns=NAME:.metadata.name,META:.metadata.labels,SPEC:.spec",
    ];
    let before = kubectl(control_plane, &specs).await;
    let text = format!("{HEAD}metadata: {{name: a-plan}}\nspec: {SPEC}\n");
    let [plan] = docs::commands(MANUAL, "a_plan_is_told_step_by_step_and_nothing_is_written").unwrap();
    std::fs::write(directory.path().join("web.yaml"), text.replace("absent", "frontend")).unwrap();
    let mut plan = command(&config, &typed(&plan));
    // No operator is here that could say it.
    plan.arg("--agent-image=agent:1").current_dir(directory.path());
    let told = end(plan).await;
    assert_eq!((told.code, told.stderr.as_str()), (Some(0), ""), "{told:?}");
    assert_eq!(
        told.stdout,
        "\
a-plan would be created
  1  hold-object a-plan
  2  apply-agent-account kube-system/proxy-agent, sourcepreserve-proxy-agent
     bind-agent-account sourcepreserve-node-proxier, sourcepreserve-proxy-agent
     apply-agent-policy sourcepreserve-agent-own-node
     bind-agent-policy sourcepreserve-agent-own-node
  3  apply-pool kube-system/proxy-agent-default: image agent:1
     apply-images kube-system/proxy-agent-images-default: image agent:1
     keep-kube-proxy-off kube-system/kube-proxy: required node affinity, sourcepreserve.io/agent-pool DoesNotExist
  4  pull-images work-1
  5  hand-over-node work-1: to the agent of pool default
  6  handed-over-node work-1
  7  pull-images work-2
  8  hand-over-node work-2: to the agent of pool default
  9  handed-over-node work-2
     delete-images kube-system/proxy-agent-images-default
 10  label-service web/frontend: sourcepreserve.io/preserve=a-plan
 11  localise-service web/frontend: externalTrafficPolicy Cluster -> Local, its load balancer must follow healthCheckNodePort
a-plan becomes Ready: the client address arrives at 1 Service
     its Services, seen from work-1, work-2: Full -> ClusterOnly
"
    );
    assert_eq!(kubectl(control_plane, &specs).await, before);
    assert!(!kubectl(control_plane, &["get", "isp"]).await.contains("a-plan"));

    // The same, without an endpoint where the traffic enters, by the standard input.
    let text = text.replace("absent", "elsewhere");
    let told = with_input(&config, &["plan", "-f", "-"], &text);
    assert_eq!(told.code, Some(2), "{told:?}");
    assert!(
        told.stdout.ends_with(
            "a-plan does not become Ready: NoIngressEndpoint: Service web/elsewhere has no ready endpoint on an ingress node, so \
             externalTrafficPolicy Local would drop everything: run one of its pods on an ingress node\n"
        ),
        "{}",
        told.stdout
    );
}

const HEAD: &str = "apiVersion: sourcepreserve.io/v1alpha1\nkind: IngressSourcePreserve\n";

fn with_input(config: &Path, arguments: &[&str], input: &str) -> Ended {
    let mut command = command(config, arguments);
    let mut child =
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    child.stdin.take().unwrap().write_all(input.as_bytes()).unwrap();
    ended(child.wait_with_output().unwrap())
}

#[tokio::test]
async fn a_node_is_explained() {
    let (control_plane, _) = cluster().await;
    let config = control_plane.kubeconfig();
    apply(control_plane, &object("explained")).await;
    let [explain] = docs::commands(MANUAL, "a_node_is_explained").unwrap();
    let told = end(command(&config, &typed(&explain))).await;
    assert_eq!(told.code, Some(0), "{told:?}");
    let block = "\
  explained  ClusterOnly: it may not see the external addresses of the Services
             elsewhere: ingressNodes.selector does not match (node-role.kubernetes.io/ingress=)
             in pool default: its selector matches (every node)
             acknowledged: nothing, no agent reports
";
    assert!(told.stdout.starts_with("work-1: the cluster's kube-proxy serves it\n"), "{}", told.stdout);
    assert!(told.stdout.contains(block), "{}", told.stdout);
    let told = end(command(&config, &["explain-node", "edge-1"])).await;
    assert!(
        told.stdout.contains("  explained  Full: it may see the Services as they are\n"),
        "{}",
        told.stdout
    );
    let told = end(command(&config, &["explain-node", "work-9"])).await;
    assert_eq!(told.code, Some(1));
    assert_eq!(told.stderr, "error: there is no node \"work-9\"; `kubectl get nodes` lists them\n");
}

/// A kubeconfig of this account.
async fn account(control_plane: &ControlPlane, name: &str, directory: &tempfile::TempDir) -> PathBuf {
    let admin = std::fs::read_to_string(control_plane.kubeconfig()).unwrap();
    let mut config: Value = serde_yaml::from_str(&admin).unwrap();
    let token = kubectl(control_plane, &["create", "token", name, "-n", "web"]).await;
    config["users"][0]["user"] = json!({"token": token.trim()});
    file(directory, &config.to_string())
}

#[tokio::test]
async fn a_right_that_is_missing_is_named() {
    let ((control_plane, _), directory) = (cluster().await, tempfile::tempdir().unwrap());
    let path = account(control_plane, "nobody", &directory).await;
    let told = end(command(&path, &["status"])).await;
    assert_eq!(told.code, Some(1));
    for part in ["the right to list ingresssourcepreserves.sourcepreserve.io", "kubectl auth can-i list"] {
        assert!(told.stderr.contains(part), "{part}: {}", told.stderr);
    }
    let text = std::fs::read_to_string(&path).unwrap();
    let mut config: Value = serde_json::from_str(&text).unwrap();
    config["users"][0]["user"]["token"] = json!("nobody's");
    let told = end(command(&file(&directory, &config.to_string()), &["explain-node", "work-1"])).await;
    assert!(told.stderr.contains("does not know who you are: log in again"), "{}", told.stderr);
}

/// What the manual says under "Rights".
fn rights() -> Value {
    let rule = |group: &str, resources: &[&str], verbs: &[&str]| json!({"apiGroups": [group], "resources": resources, "verbs": verbs});
    let policies = [
        "validatingwebhookconfigurations",
        "mutatingwebhookconfigurations",
        "mutatingadmissionpolicies",
        "mutatingadmissionpolicybindings",
    ];
    let own_node = ["validatingadmissionpolicies", "validatingadmissionpolicybindings"];
    let named = |group: &str, resources: &[&str], names: &[&str]| json!({"apiGroups": [group], "resources": resources, "resourceNames": names, "verbs": ["list"]});
    let agents = ["sourcepreserve-proxy-agent", "sourcepreserve-node-proxier"];
    json!([
        rule("sourcepreserve.io", &["ingresssourcepreserves"], &["list"]),
        rule("sourcepreserve.io", &["ingresssourcenodes"], &["list", "get"]),
        rule("", &["services", "pods", "namespaces"], &["list"]),
        rule("", &["nodes"], &["list", "get"]),
        rule("", &["configmaps"], &["get"]),
        rule("apps", &["daemonsets"], &["list"]),
        rule("discovery.k8s.io", &["endpointslices"], &["list"]),
        rule("admissionregistration.k8s.io", &policies, &["list"]),
        named("", &["serviceaccounts"], &["proxy-agent"]),
        named("rbac.authorization.k8s.io", &["clusterroles"], &agents[..1]),
        named("rbac.authorization.k8s.io", &["clusterrolebindings"], &agents),
        named("admissionregistration.k8s.io", &own_node, &["sourcepreserve-agent-own-node"]),
    ])
}

#[tokio::test]
async fn the_rights_that_the_manual_names_suffice() {
    let ((control_plane, _), directory) = (cluster().await, tempfile::tempdir().unwrap());
    let rbac = "rbac.authorization.k8s.io";
    for object in [
        json!({
            "apiVersion": format!("{rbac}/v1"), "kind": "ClusterRole", "metadata": {"name": "isp-reader"}, "rules": rights(),
        }),
        json!({
            "apiVersion": format!("{rbac}/v1"), "kind": "ClusterRoleBinding", "metadata": {"name": "isp-reader"},
            "roleRef": {"apiGroup": rbac, "kind": "ClusterRole", "name": "isp-reader"},
            "subjects": [{"kind": "ServiceAccount", "name": "reader", "namespace": "web"}],
        }),
    ] {
        apply(control_plane, &object).await;
    }
    let path = account(control_plane, "reader", &directory).await;
    let sample = concat!(env!("CARGO_MANIFEST_DIR"), "/../manifests/samples/istio-gateway.yaml");
    for (arguments, code) in [
        (&["status", "-o", "wide"][..], None),
        (&["explain-node", "work-1"], Some(0)),
        (&["plan", "-f", sample], Some(2)),
    ] {
        let told = end(command(&path, arguments)).await;
        assert_eq!(told.stderr, "", "{arguments:?}");
        assert_ne!(told.code, Some(1), "{arguments:?}");
        assert!(code.is_none() || told.code == code, "{arguments:?}: {told:?}");
    }
}

#[tokio::test]
async fn a_reader_that_goes_away_is_no_trouble() {
    let (control_plane, _) = cluster().await;
    for arguments in
        [&["status", "-o", "json"][..], &["explain-node", "work-1"], &["completion", "bash"], &["--help"]]
    {
        let (reader, writer) = std::io::pipe().unwrap();
        drop(reader);
        let mut command = command(&control_plane.kubeconfig(), arguments);
        let child = command.stdout(writer).stderr(Stdio::piped()).spawn().unwrap();
        let told = ended(child.wait_with_output().unwrap());
        assert_eq!(told.stderr, "", "{arguments:?}");
        assert!(matches!(told.code, Some(0 | 2)), "{arguments:?}: {told:?}");
    }
}

#[tokio::test]
async fn a_watch_shows_what_changes_and_nothing_else() {
    let (control_plane, _) = cluster().await;
    apply(control_plane, &object("istio")).await;
    let [watch] = docs::commands("docs/tutorial.md", "a_watch_shows_what_changes_and_nothing_else").unwrap();
    let mut command = command(&control_plane.kubeconfig(), &typed(&watch));
    let mut child = command.stdout(Stdio::piped()).spawn().unwrap();
    let output = BufReader::new(child.stdout.take().unwrap());
    let (sender, mut lines) = tokio::sync::mpsc::unbounded_channel();
    std::thread::spawn(move || output.lines().map_while(Result::ok).try_for_each(|line| sender.send(line)));
    let mut next =
        async || tokio::time::timeout(Duration::from_mins(1), lines.recv()).await.unwrap().unwrap();
    assert_eq!(next().await, "istio: Unknown");
    while next().await.starts_with("  waits for") {}
    // A label is nobody's news.
    kubectl(control_plane, &["label", "isp", "istio", "a=b"]).await;
    set_status(control_plane, "isp", "istio", &ready(&json!([]))).await;
    assert_eq!(next().await, "");
    assert_eq!(next().await, "istio: Ready, all is well");
    child.kill().unwrap();
    child.wait().unwrap();
}
