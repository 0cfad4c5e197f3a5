//! `plan`, in both modes.

use std::io::Write;
use std::path::Path;
use std::process::Stdio;

use isp_lab::docs;
use isp_testkit::control_plane::kubectl;
use isp_testkit::plugin::{self, Ended, SPEC, command, end, ended, typed};

use super::{PROGRAM, REPORTS};

const MANUAL: &str = "docs/kubectl-isp.md";

#[tokio::test]
async fn a_plan_is_told_step_by_step_and_nothing_is_written() {
    let ((control_plane, _), _guard) = (plugin::cluster(PROGRAM).await, REPORTS.lock().await);
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
    let ((control_plane, _), _guard) = (plugin::cluster(PROGRAM).await, REPORTS.lock().await);
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
