//! Output for scripts, dumps and completion, on a real API server and with the real kubectl.

#![allow(clippy::unwrap_used, clippy::panic, reason = "helpers of tests fail as tests do")]

use std::path::Path;
use std::process::Command;

use isp_lab::ControlPlane;
use isp_lab::docs::{self, Terminal};
use isp_testkit::control_plane::{apply, kubectl};
use isp_testkit::plugin::{SPEC, command, end, set_status};
use isp_testkit::{plugin, repository, schema};
use serde_json::{Value, json};
use tokio::sync::Mutex;

/// The program under test.
const PROGRAM: &str = env!("CARGO_BIN_EXE_kubectl-isp");

fn object(name: &str, service: &str) -> Value {
    let spec: Value = serde_yaml::from_str(&SPEC.replace("absent", service)).unwrap();
    json!({
        "apiVersion": "sourcepreserve.io/v1alpha1", "kind": "IngressSourcePreserve", "spec": spec,
        // Held already, so that the plans of other tests have nothing to do for it.
        "metadata": {"name": name, "finalizers": ["sourcepreserve.io/restore"]},
    })
}

/// A pod of an account that exists from the beginning.
fn pod(name: &str) -> Value {
    json!({
        "apiVersion": "v1", "kind": "Pod", "metadata": {"name": name, "namespace": "web"},
        "spec": {
            "nodeName": "work-1", "serviceAccountName": "nobody", "automountServiceAccountToken": false,
            "containers": [{"name": "app", "image": "app"}],
        },
    })
}

/// Held by tests whose objects for the same Service would change each other's plans.
static FRONTEND: Mutex<()> = Mutex::const_new(());

#[tokio::test]
async fn the_plan_of_a_dump_is_the_plan_of_the_cluster() {
    let (control_plane, _) = plugin::cluster(PROGRAM).await;
    let [block] = docs::commands("docs/gitops.md", "the_plan_of_a_dump_is_the_plan_of_the_cluster").unwrap();
    let programs = [&*control_plane.program("kubectl").unwrap(), Path::new(PROGRAM)];
    let terminal = Terminal::open(&control_plane.kubeconfig(), &programs).unwrap();
    let _alone = FRONTEND.lock().await;
    // Made by others: with field managers, and with an object that the operator has not seen.
    apply(control_plane, &object("of-others", "absent")).await;
    // Every cluster has one, except one that has just started.
    apply(control_plane, &pod("dumped")).await;
    terminal.save("web.yaml", &object("dumped", "frontend").to_string()).unwrap();
    let more = "--agent-image=agent:1 -o json";
    let told = terminal.run_to_its_end(&block.with(more)).await.unwrap();
    assert_eq!((told.code, told.stderr.as_str()), (Some(3), ""), "{}", told.stdout);
    let of_dump: Value = serde_json::from_str(&told.stdout).unwrap();
    schema::assert_output("plan", &of_dump);

    let directory = tempfile::tempdir().unwrap();
    let file = plugin::file(&directory, &object("dumped", "frontend").to_string());
    let arguments = ["plan", "-f", file.to_str().unwrap(), "--agent-image=agent:1", "-o", "json"];
    let live = end(command(PROGRAM, &control_plane.kubeconfig(), &arguments)).await;
    assert_eq!((live.code, live.stderr.as_str()), (Some(0), ""), "{}", live.stdout);
    let live: Value = serde_json::from_str(&live.stdout).unwrap();
    assert!(live["steps"].as_array().unwrap().len() > 5, "{live:#}");
    assert_eq!(of_dump, live);
}

#[tokio::test]
async fn a_file_that_changes_nothing_ends_with_zero() {
    let (control_plane, _) = plugin::cluster(PROGRAM).await;
    let directory = tempfile::tempdir().unwrap();
    let _alone = FRONTEND.lock().await;
    let mut wanted = object("applied", "frontend");
    // It is deleted again, and no operator runs that would release it.
    wanted["metadata"]["finalizers"].take();
    let file = plugin::file(&directory, &wanted.to_string());
    let config = control_plane.kubeconfig();
    let arguments = ["plan", "-f", file.to_str().unwrap(), "--exit-code", "-o", "json"];
    let before = end(command(PROGRAM, &config, &arguments)).await;
    kubectl(control_plane, &["apply", "-f", file.to_str().unwrap()]).await;
    let after = end(command(PROGRAM, &config, &arguments)).await;
    kubectl(control_plane, &["delete", "isp", "applied"]).await;
    for (told, change, code) in [(before, "created", 3), (after, "unchanged", 0)] {
        let json: Value = serde_json::from_str(&told.stdout).unwrap();
        assert_eq!((&json["objects"][0]["change"], told.code), (&json!(change), Some(code)), "{told:?}");
    }
}

#[tokio::test]
async fn a_node_is_explained_to_scripts() {
    let (control_plane, _) = plugin::cluster(PROGRAM).await;
    apply(control_plane, &object("scripted", "absent")).await;
    let config = control_plane.kubeconfig();
    for (node, view, code) in [("work-1", "ClusterOnly", 2), ("edge-1", "Full", 0)] {
        let told = end(command(PROGRAM, &config, &["explain-node", node, "-o", "json"])).await;
        assert_eq!((told.code, told.stderr.as_str()), (Some(code), ""), "{told:?}");
        let json: Value = serde_json::from_str(&told.stdout).unwrap();
        schema::assert_output("explain-node", &json);
        let objects = json["objects"].as_array().unwrap();
        let own = objects.iter().find(|object| object["object"] == "scripted").unwrap();
        assert_eq!((&json["sound"], &own["view"]), (&json!(code == 0), &json!(view)), "{json:#}");
        let told = end(command(PROGRAM, &config, &["explain-node", node, "-o", "yaml"])).await;
        // Objects of other tests come and go.
        let yaml: Value = serde_yaml::from_str(&told.stdout).unwrap();
        schema::assert_output("explain-node", &yaml);
        assert_eq!((told.code, &yaml["node"]), (Some(code), &json["node"]));
    }
}

/// What kubectl answers to a shell that completes these words.
async fn completed(control_plane: &ControlPlane, words: &[&str]) -> String {
    let mut kubectl = Command::new(control_plane.program("kubectl").unwrap());
    let programs = [Path::new(PROGRAM).parent().unwrap(), &repository::file("cli")];
    let inherited = std::env::var_os("PATH").unwrap();
    let path = programs.map(Path::to_owned).into_iter().chain(std::env::split_paths(&inherited));
    kubectl.arg("__complete").args(words).env("KUBECONFIG", control_plane.kubeconfig());
    kubectl.env("PATH", std::env::join_paths(path).unwrap());
    let told = end(kubectl).await;
    assert_eq!(told.code, Some(0), "{words:?}: {told:?}");
    // kubectl itself says what it calls and which directive it got.
    let of_kubectl = |line: &str| line.starts_with("[Debug] ") || line.starts_with("Completion ended with ");
    assert!(told.stderr.lines().all(of_kubectl), "{told:?}");
    told.stdout
}

#[tokio::test]
async fn kubectl_completes_names_through_the_executable_beside_the_plugin() {
    let (control_plane, _) = plugin::cluster(PROGRAM).await;
    apply(control_plane, &object("completed", "absent")).await;
    set_status(control_plane, "isp", "completed", &json!({"phase": "Degraded"})).await;
    apply(control_plane, &pod("cart-1")).await;
    let running =
        json!({"status": {"phase": "Running", "podIPs": [{"ip": "10.244.1.9"}], "podIP": "10.244.1.9"}});
    let patch = running.to_string();
    kubectl(
        control_plane,
        &["patch", "pod", "-n", "web", "cart-1", "--subresource=status", "--type=merge", "-p", &patch],
    )
    .await;
    for (words, expected, directive) in [
        (&["isp", ""][..], "explain-node\tExplain which preserved Services", ":4"),
        (&["isp", "status", ""], "completed\tDegraded", ":4"),
        (&["isp", "status", "compl"], "completed\tDegraded", ":4"),
        (&["isp", "explain-node", ""], "edge-1\tingress", ":4"),
        (&["isp", "explain-node", "w"], "work-1", ":4"),
        (&["isp", "rules", ""], "kube-system/", ":6"),
        (&["isp", "rules", "web/"], "web/cart-1\ton node work-1", ":4"),
        (
            &["isp", "doctor", "--service", ""],
            "web/frontend\tLoadBalancer, externalTrafficPolicy Cluster",
            ":4",
        ),
        (&["isp", "doctor", "--service", "web/f"], "web/frontend", ":4"),
        (&["isp", "plan", "-n", ""], "kube-system", ":4"),
        (&["isp", "status", "-o", ""], "wide", ":4"),
        (&["isp", "plan", "-f", ""], "yaml", ":8"),
        (&["isp", "doctor", "--from-dir", ""], ":16", ":16"),
    ] {
        let told = completed(control_plane, words).await;
        assert!(told.lines().any(|line| line.starts_with(expected)), "{words:?}: {told}");
        assert_eq!(told.lines().last(), Some(directive), "{words:?}: {told}");
    }
    assert!(
        !completed(control_plane, &["isp", "doctor", "--service", ""]).await.contains("default/kubernetes")
    );
    kubectl(control_plane, &["delete", "pod", "-n", "web", "cart-1", "--grace-period=0", "--force"]).await;
}
