//! Every command against a real API server: what it reads, what it says, and what it ends with.

#![allow(clippy::unwrap_used, clippy::panic, reason = "helpers of tests fail as tests do")]

use std::io::{BufRead, BufReader, Write};
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::time::Duration;

use isp_lab::{ControlPlane, docs};
use isp_testkit::accounts::grant;
use isp_testkit::control_plane::{SYSTEM, apply, kubectl};
use isp_testkit::plugin::{Ended, SPEC, command, end, ended, file, lease, set_status, typed};
use isp_testkit::{plugin, repository};
use serde_json::{Value, json};

/// The program under test.
const PROGRAM: &str = env!("CARGO_BIN_EXE_kubectl-isp");

const MANUAL: &str = "docs/kubectl-isp.md";

#[tokio::test]
async fn without_the_definitions_the_way_to_install_them_is_told() {
    let (_, bare) = plugin::cluster(PROGRAM).await;
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
    let (control_plane, _) = plugin::cluster(PROGRAM).await;
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

    let told = end(command(PROGRAM, &config, &typed(&on_its_way))).await;
    assert_eq!((told.code, told.stderr.as_str()), (Some(0), ""));
    let (table, block) = told.stdout.split_once("\n\n").unwrap();
    let [header, row] = table.lines().collect::<Vec<_>>()[..] else { panic!("{table}") };
    let words = |line: &str| line.split_whitespace().map(str::to_owned).collect::<Vec<_>>();
    assert_eq!(
        words(header),
        ["NAME", "PHASE", "READY", "CHECKED", "AGENTS", "LABELS", "ACKS", "LOCAL", "AGE"]
    );
    assert_eq!(words(row)[..8], ["web", "Ready", "✔", "✔", "-", "-", "-", "-"], "{row}");
    let (heading, rest) = block.split_once('\n').unwrap();
    assert!(heading.starts_with("web: Ready for ") && heading.ends_with(", all is well"), "{heading}");
    assert_eq!(
        rest,
        "  services   web/frontend  Preserved, 192.0.2.10, 1 endpoint on ingress nodes
  nodes      pool default: 2 nodes, 2 have an agent, 2 ready
"
    );

    let told = end(command(PROGRAM, &config, &["status"])).await;
    assert_eq!(told.code, Some(2), "one of them is not ready: {told:?}");
    assert!(told.stdout.contains(
        "status-new: Unknown\n  waiting    the operator has not observed the object yet (created "
    ));

    let told = end(command(PROGRAM, &config, &["status", "web", "-o", "json"])).await;
    let list: Value = serde_json::from_str(&told.stdout).unwrap();
    assert_eq!(
        (told.code, &list["kind"], list["items"].as_array().unwrap().len()),
        (Some(0), &json!("List"), 1)
    );
    assert_eq!(list["items"][0]["status"]["services"], services);
    let told = end(command(PROGRAM, &config, &["status", "status-new", "-o", "yaml"])).await;
    let list: Value = serde_yaml::from_str(&told.stdout).unwrap();
    assert_eq!((told.code, &list["items"][0]["metadata"]["name"]), (Some(2), &json!("status-new")));
    assert_eq!(list["items"][0]["metadata"]["managedFields"], Value::Null);

    let trouble =
        json!({"phase": "Degraded", "conditions": [condition("Ready", "False", "an agent is missing")]});
    set_status(control_plane, "isp", "web", &trouble).await;
    let told = end(command(PROGRAM, &config, &typed(&in_trouble))).await;
    assert_eq!(told.code, Some(2), "{told:?}");
    assert!(
        told.stdout.contains("\n\nweb: Degraded\n") && told.stdout.contains("an agent is missing"),
        "{told:?}"
    );

    let told = end(command(PROGRAM, &config, &["status", "nobody"])).await;
    assert_eq!(told.code, Some(1));
    assert!(
        told.stderr.contains("there is no IngressSourcePreserve \"nobody\"; this cluster has: "),
        "{}",
        told.stderr
    );
}

#[tokio::test]
async fn an_object_is_not_ready_while_no_operator_runs() {
    let (control_plane, _) = plugin::cluster(PROGRAM).await;
    let config = control_plane.kubeconfig();
    apply(control_plane, &object("orphan")).await;
    set_status(control_plane, "isp", "orphan", &ready(&json!([]))).await;
    assert_eq!(end(command(PROGRAM, &config, &["status", "orphan"])).await.code, Some(0));

    let nowhere = ["status", "orphan", "--operator-namespace", "web"];
    let told = end(command(PROGRAM, &config, &nowhere)).await;
    assert_eq!(told.code, Some(2), "{told:?}");
    assert!(told.stdout.starts_with("operator: not running: namespace web has no Lease "), "{told:?}");
    assert!(told.stdout.contains("\norphan: Unknown, was Ready when the operator last ran\n"), "{told:?}");

    kubectl(control_plane, &["create", "namespace", "abandoned"]).await;
    apply(control_plane, &lease("abandoned", "2026-01-01T00:00:00.000000Z")).await;
    let abandoned = ["status", "orphan", "-o", "json", "--operator-namespace", "abandoned"];
    let told = end(command(PROGRAM, &config, &abandoned)).await;
    assert_eq!(told.code, Some(2), "{told:?}");
    let begin = "warning: operator: not running: Lease abandoned/sourcepreserve-operator was last renewed ";
    assert!(told.stderr.starts_with(begin), "{told:?}");
    let list: Value = serde_json::from_str(&told.stdout).unwrap();
    assert_eq!(list["items"][0]["metadata"]["name"], "orphan");
}

#[tokio::test]
async fn an_operator_whose_clock_is_wrong_is_known_by_the_lease_that_it_renews() {
    let (control_plane, _) = plugin::cluster(PROGRAM).await;
    let config = control_plane.kubeconfig();
    apply(control_plane, &object("skewed")).await;
    set_status(control_plane, "isp", "skewed", &ready(&json!([]))).await;
    kubectl(control_plane, &["create", "namespace", "skewed"]).await;
    apply(control_plane, &lease("skewed", "2026-01-01T00:00:00.000000Z")).await;
    // Renewed until the end: on a busy machine `status` may look late.
    let renewals = async {
        for second in 1.. {
            tokio::time::sleep(Duration::from_secs(1)).await;
            let renewed = format!("2026-01-01T00:{:02}:{:02}.000000Z", second / 60, second % 60);
            apply(control_plane, &lease("skewed", &renewed)).await;
        }
    };
    let status = ["status", "skewed", "--operator-namespace", "skewed"];
    let told = tokio::select! {
        told = end(command(PROGRAM, &config, &status)) => told,
        () = renewals => unreachable!("it never ends"),
    };
    assert_eq!(told.code, Some(0), "{told:?}");
    assert!(told.stdout.starts_with("NAME "), "{told:?}");
}

#[tokio::test]
async fn a_long_list_is_read_page_by_page() {
    let ((control_plane, _), directory) = (plugin::cluster(PROGRAM).await, tempfile::tempdir().unwrap());
    // More than one page.
    let objects: Vec<Value> = (0..120).map(|number| object(&format!("many-{number:03}"))).collect();
    apply(control_plane, &json!({"apiVersion": "v1", "kind": "List", "items": objects})).await;
    let path = reader_of_objects(control_plane, "pager", &directory).await;
    let told = end(command(PROGRAM, &path, &["status", "-o", "json"])).await;
    let list: Value = serde_json::from_str(&told.stdout).unwrap();
    let names = list["items"].as_array().unwrap().iter().filter_map(|item| item["metadata"]["name"].as_str());
    assert_eq!(names.filter(|name| name.starts_with("many-")).count(), 120);
    let requests = control_plane.audit().unwrap();
    let pages = requests.iter().filter(|request| {
        request.user == "system:serviceaccount:sourcepreserve-system:pager"
            && (request.verb.as_str(), request.resource.as_str()) == ("list", "ingresssourcepreserves")
    });
    assert!(pages.count() > 1, "one request has all");
}

/// A kubeconfig of an account that may list objects and reports, and nothing else. The audit log
/// has the requests of accounts in this namespace.
async fn reader_of_objects(
    control_plane: &ControlPlane,
    name: &str,
    directory: &tempfile::TempDir,
) -> PathBuf {
    let account = json!({"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": name, "namespace": SYSTEM}});
    apply(control_plane, &account).await;
    let resources = ["ingresssourcepreserves", "ingresssourcenodes"];
    let rules = json!([{"apiGroups": ["sourcepreserve.io"], "resources": resources, "verbs": ["list"]}]);
    grant(control_plane, (SYSTEM, name), &rules).await;
    kubeconfig_of(control_plane, SYSTEM, name, directory).await
}

#[tokio::test]
async fn a_plan_is_told_step_by_step_and_nothing_is_written() {
    let (control_plane, _) = plugin::cluster(PROGRAM).await;
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
    let mut plan = command(PROGRAM, &config, &typed(&plan));
    // No operator is here that could say it.
    plan.arg("--agent-image=agent:1").current_dir(directory.path());
    let told = end(plan).await;
    assert_eq!((told.code, told.stderr.as_str()), (Some(0), ""), "{told:?}");
    assert_eq!(
        told.stdout,
        "\
a-plan would be created
  1  add finalizer sourcepreserve.io/restore to IngressSourcePreserve a-plan
  2  create ServiceAccount kube-system/proxy-agent
     create ClusterRole sourcepreserve-proxy-agent
     create ClusterRoleBindings sourcepreserve-node-proxier, sourcepreserve-proxy-agent
     create ValidatingAdmissionPolicy sourcepreserve-agent-own-node
     create ValidatingAdmissionPolicyBinding sourcepreserve-agent-own-node
  3  create DaemonSet kube-system/proxy-agent-default (image agent:1)
     create DaemonSet kube-system/proxy-agent-images-default (pulls image agent:1)
     add node affinity to DaemonSet kube-system/kube-proxy: sourcepreserve.io/agent-pool DoesNotExist
  4  pull the agent's images on node work-1
  5  move node work-1 to the agent of pool default
  6  wait until the agent serves node work-1, then record that the move is complete
  7  pull the agent's images on node work-2
  8  move node work-2 to the agent of pool default
  9  wait until the agent serves node work-2, then record that the move is complete
     delete DaemonSet kube-system/proxy-agent-images-default
 10  set label sourcepreserve.io/preserve=a-plan on Service web/frontend
 11  set externalTrafficPolicy=Local on Service web/frontend (was Cluster); its load balancer must follow healthCheckNodePort
Actions with the same step number run in any order.
a-plan becomes Ready: the source IP reaches 1 Service
     view of its Services on nodes work-1, work-2: Full -> ClusterOnly
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
             externalTrafficPolicy Local would drop all external traffic: run one of its pods on an ingress node\n"
        ),
        "{}",
        told.stdout
    );
}

const HEAD: &str = "apiVersion: sourcepreserve.io/v1alpha1\nkind: IngressSourcePreserve\n";

fn with_input(config: &Path, arguments: &[&str], input: &str) -> Ended {
    let mut command = command(PROGRAM, config, arguments);
    let mut child =
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    child.stdin.take().unwrap().write_all(input.as_bytes()).unwrap();
    ended(child.wait_with_output().unwrap())
}

#[tokio::test]
async fn a_plan_of_mode_beside_moves_no_node() {
    let (control_plane, _) = plugin::cluster(PROGRAM).await;
    let (config, directory) = (control_plane.kubeconfig(), tempfile::tempdir().unwrap());
    let spec = SPEC.replace("absent", "frontend").replacen('{', "{mode: Beside, ", 1);
    let text = format!("{HEAD}metadata: {{name: beside-plan}}\nspec: {spec}\n");
    std::fs::write(directory.path().join("beside.yaml"), text).unwrap();
    let [plan] = docs::commands(MANUAL, "a_plan_of_mode_beside_moves_no_node").unwrap();
    let mut plan = command(PROGRAM, &config, &typed(&plan));
    plan.arg("--agent-image=agent:1").current_dir(directory.path());
    let told = end(plan).await;
    assert_eq!((told.code, told.stderr.as_str()), (Some(0), ""), "{told:?}");
    let steps = "
  3  create DaemonSet kube-system/proxy-agent-beside (image agent:1), which runs on every node
  4  set label sourcepreserve.io/preserve=beside-plan on Service web/frontend
  5  set label service.kubernetes.io/service-proxy-name=ingress-source-preserve on Service web/frontend: every kube-proxy skips it, and the agents serve it
  6  set externalTrafficPolicy=Local on Service web/frontend (was Cluster); its load balancer must follow healthCheckNodePort
Actions with the same step number run in any order.
beside-plan becomes Ready: the source IP reaches 1 Service
";
    assert!(told.stdout.contains(steps), "{}", told.stdout);
}

#[tokio::test]
async fn the_report_of_mode_beside_is_read_as_well() {
    let (control_plane, _) = plugin::cluster(PROGRAM).await;
    let name = "work-2.beside";
    let report = json!({
        "apiVersion": "sourcepreserve.io/v1alpha1", "kind": "IngressSourceNode", "metadata": {"name": name},
    });
    apply(control_plane, &report).await;
    // An object of this mode would concern the nodes of other tests.
    let views = json!([{
        "object": "gone", "uid": "gone", "generation": 1, "view": "Full", "received": true, "programmed": true,
        "services": ["web/frontend"],
    }]);
    let status = json!({"pool": "", "mode": "Beside", "active": true, "views": views});
    set_status(control_plane, "isn", name, &status).await;
    let told = end(command(PROGRAM, &control_plane.kubeconfig(), &["explain-node", "work-2"])).await;
    assert_eq!(told.stderr, "");
    assert!(
        told.stdout.starts_with("work-2: the agent serves 1 preserved Service beside "),
        "{}",
        told.stdout
    );
    assert!(
        told.stdout.contains("  agent      mode Beside: no pod on this node runs it\n"),
        "{}",
        told.stdout
    );
}

#[tokio::test]
async fn a_node_is_explained() {
    let (control_plane, _) = plugin::cluster(PROGRAM).await;
    let config = control_plane.kubeconfig();
    apply(control_plane, &object("explained")).await;
    let [explain] = docs::commands(MANUAL, "a_node_is_explained").unwrap();
    let told = end(command(PROGRAM, &config, &typed(&explain))).await;
    assert_eq!(told.code, Some(2), "the node has no agent: {told:?}");
    let block = "\
  explained  ClusterOnly: the node does not see the external addresses of the Services
             non-ingress node: ingressNodes.selector does not match (node-role.kubernetes.io/ingress=)
             in pool default: its selector matches (every node)
             acknowledged: nothing, no agent reports
";
    assert!(told.stdout.starts_with("work-1: served by the cluster's kube-proxy\n"), "{}", told.stdout);
    assert!(told.stdout.contains(block), "{}", told.stdout);
    let told = end(command(PROGRAM, &config, &["explain-node", "edge-1"])).await;
    assert_eq!(told.code, Some(0), "an ingress node needs no agent: {told:?}");
    assert!(
        told.stdout.contains("  explained  Full: the node sees all addresses of the Services\n"),
        "{}",
        told.stdout
    );
    let told = end(command(PROGRAM, &config, &["explain-node", "work-9"])).await;
    assert_eq!(told.code, Some(1));
    assert_eq!(told.stderr, "error: there is no node \"work-9\"; `kubectl get nodes` lists them\n");
}

/// A kubeconfig of this account.
async fn kubeconfig_of(
    control_plane: &ControlPlane,
    namespace: &str,
    name: &str,
    directory: &tempfile::TempDir,
) -> PathBuf {
    let path = directory.path().join("kubeconfig");
    control_plane.write_kubeconfig_of(namespace, name, &path).await.unwrap();
    path
}

#[tokio::test]
async fn a_right_that_is_missing_is_named() {
    let ((control_plane, _), directory) = (plugin::cluster(PROGRAM).await, tempfile::tempdir().unwrap());
    let path = kubeconfig_of(control_plane, "web", "nobody", &directory).await;
    let told = end(command(PROGRAM, &path, &["status"])).await;
    assert_eq!(told.code, Some(1));
    for part in ["the right to list ingresssourcepreserves.sourcepreserve.io", "kubectl auth can-i list"] {
        assert!(told.stderr.contains(part), "{part}: {}", told.stderr);
    }
    // Nothing is created to find out.
    let told = end(command(PROGRAM, &path, &["rules", "web/absent"])).await;
    assert_eq!(told.code, Some(1));
    for part in ["the right to create pods in namespace kube-system", "kubectl auth can-i create pods -n"] {
        assert!(told.stderr.contains(part), "{part}: {}", told.stderr);
    }
    let text = std::fs::read_to_string(&path).unwrap();
    let mut config: Value = serde_json::from_str(&text).unwrap();
    config["users"][0]["user"]["token"] = json!("nobody's");
    let told =
        end(command(PROGRAM, &file(&directory, &config.to_string()), &["explain-node", "work-1"])).await;
    assert!(told.stderr.contains("rejects your credentials: log in again"), "{}", told.stderr);
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
        json!({
            "apiGroups": ["coordination.k8s.io"], "resources": ["leases"], "verbs": ["get"],
            "resourceNames": ["sourcepreserve-operator"],
        }),
        named("", &["serviceaccounts"], &["proxy-agent"]),
        named("rbac.authorization.k8s.io", &["clusterroles"], &agents[..1]),
        named("rbac.authorization.k8s.io", &["clusterrolebindings"], &agents),
        named("admissionregistration.k8s.io", &own_node, &["sourcepreserve-agent-own-node"]),
    ])
}

#[tokio::test]
async fn the_rights_that_the_manual_names_suffice() {
    let ((control_plane, _), directory) = (plugin::cluster(PROGRAM).await, tempfile::tempdir().unwrap());
    grant(control_plane, ("web", "reader"), &rights()).await;
    let path = kubeconfig_of(control_plane, "web", "reader", &directory).await;
    let sample = repository::path("manifests/samples/istio-gateway.yaml");
    for (arguments, code) in [
        (&["status", "-o", "wide"][..], None),
        (&["explain-node", "edge-1"], Some(0)),
        (&["plan", "-f", &sample], Some(2)),
    ] {
        let told = end(command(PROGRAM, &path, arguments)).await;
        assert_eq!(told.stderr, "", "{arguments:?}");
        assert_ne!(told.code, Some(1), "{arguments:?}");
        assert!(!told.stdout.contains("the right to"), "{arguments:?}: {told:?}");
        assert!(code.is_none() || told.code == code, "{arguments:?}: {told:?}");
    }
}

#[tokio::test]
async fn status_works_without_the_rights_to_nodes_and_the_lease_and_says_so() {
    let ((control_plane, _), directory) = (plugin::cluster(PROGRAM).await, tempfile::tempdir().unwrap());
    apply(control_plane, &object("plain")).await;
    set_status(control_plane, "isp", "plain", &ready(&json!([]))).await;
    let path = reader_of_objects(control_plane, "viewer", &directory).await;
    let told = end(command(PROGRAM, &path, &["status", "plain"])).await;
    assert_eq!((told.code, told.stderr.as_str()), (Some(0), ""), "{told:?}");
    let notice = "operator: state unknown, the status below may be outdated: the right to get leases.coordination.k8s.io in \
                  namespace sourcepreserve-system is missing\n\nNAME ";
    assert!(told.stdout.starts_with(notice), "{told:?}");
    assert!(told.stdout.contains("\nplain: Ready for "), "{told:?}");
}

#[tokio::test]
async fn a_reader_that_goes_away_is_no_trouble() {
    let (control_plane, _) = plugin::cluster(PROGRAM).await;
    for arguments in
        [&["status", "-o", "json"][..], &["explain-node", "work-1"], &["completion", "bash"], &["--help"]]
    {
        let (reader, writer) = std::io::pipe().unwrap();
        drop(reader);
        let mut command = command(PROGRAM, &control_plane.kubeconfig(), arguments);
        let child = command.stdout(writer).stderr(Stdio::piped()).spawn().unwrap();
        let told = ended(child.wait_with_output().unwrap());
        assert_eq!(told.stderr, "", "{arguments:?}");
        assert!(matches!(told.code, Some(0 | 2)), "{arguments:?}: {told:?}");
    }
}

#[tokio::test]
async fn a_watch_shows_what_changes_and_nothing_else() {
    let (control_plane, _) = plugin::cluster(PROGRAM).await;
    apply(control_plane, &object("istio")).await;
    let [watch] = docs::commands("docs/tutorial.md", "a_watch_shows_what_changes_and_nothing_else").unwrap();
    let mut command = command(PROGRAM, &control_plane.kubeconfig(), &typed(&watch));
    let mut child = command.stdout(Stdio::piped()).spawn().unwrap();
    let output = BufReader::new(child.stdout.take().unwrap());
    let (sender, mut lines) = tokio::sync::mpsc::unbounded_channel();
    std::thread::spawn(move || output.lines().map_while(Result::ok).try_for_each(|line| sender.send(line)));
    let mut next =
        async || tokio::time::timeout(Duration::from_mins(1), lines.recv()).await.unwrap().unwrap();
    while next().await != "istio: Unknown" {}
    assert!(next().await.starts_with("  waiting    the operator has not observed the object yet"));
    assert!(next().await.starts_with("  to do      kubectl get pods"));
    // A label is nobody's news.
    kubectl(control_plane, &["label", "isp", "istio", "a=b"]).await;
    set_status(control_plane, "isp", "istio", &ready(&json!([]))).await;
    assert_eq!(next().await, "");
    assert!(next().await.starts_with("NAME   PHASE  READY "));
    assert!(next().await.starts_with("istio  Ready  ✔ "));
    assert_eq!(next().await, "");
    let heading = next().await;
    assert!(heading.starts_with("istio: Ready for ") && heading.ends_with(", all is well"), "{heading}");
    child.kill().unwrap();
    child.wait().unwrap();
}
