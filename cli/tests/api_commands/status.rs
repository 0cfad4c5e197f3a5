//! `status`, and `status --watch`.

use std::io::{BufRead, BufReader};
use std::process::Stdio;
use std::time::Duration;

use isp_lab::docs;
use isp_testkit::control_plane::{apply, kubectl};
use isp_testkit::plugin::{self, command, end, lease, set_status, typed};
use serde_json::{Value, json};

use super::{PROGRAM, condition, object, reader_of_objects, ready};

const MANUAL: &str = "docs/kubectl-isp.md";

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
