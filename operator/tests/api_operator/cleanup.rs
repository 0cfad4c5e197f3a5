//! `operator cleanup`, used to uninstall.

use isp_testkit::control_plane::{SYSTEM, apply, kubectl};
use isp_testkit::until;

use crate::harness::{Operator, command};
use crate::reconcile::{World, is_as_it_was, is_preserved, object, service, world};

/// Whether it succeeded, its stdout and its stderr.
async fn clean_up(world: &World, arguments: &[&str]) -> (bool, String, String) {
    let mut command = command(&world.kubeconfig, SYSTEM, "one");
    command.arg("cleanup").args(arguments);
    let output = tokio::task::spawn_blocking(move || command.output().unwrap()).await.unwrap();
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    (output.status.success(), text(&output.stdout), text(&output.stderr))
}

#[tokio::test]
async fn everything_is_put_back_once_the_operator_does_not_run_any_more() {
    let world = world().await;
    let cluster = &world.cluster;
    let mut operator = Operator::start(&world.kubeconfig, SYSTEM, "one");
    apply(cluster, &object("one")).await;
    until("the Service is preserved", async || is_preserved(&service(cluster).await)).await;

    let (success, printed, complaint) = clean_up(&world, &[]).await;
    assert!(!success, "{printed}");
    assert!(
        complaint.contains("the operator is still running") && complaint.contains("--replicas=0"),
        "{complaint}"
    );
    assert!(is_preserved(&service(cluster).await), "nothing was touched");

    assert!(operator.end(), "{}", operator.log());
    let (success, printed, complaint) = clean_up(&world, &["--timeout=60s"]).await;
    assert!(success, "{printed}{complaint}");
    let lines: Vec<_> = printed.lines().collect();
    assert_eq!(lines[0], "delete-object ingresssourcepreserve/one");
    assert!(lines.contains(&"release-service service/default/gateway"), "{printed}");
    assert_eq!(*lines.last().unwrap(), "let-object-go ingresssourcepreserve/one");
    let service = service(cluster).await;
    assert!(is_as_it_was(&service), "{service}");
    assert_eq!(kubectl(cluster, &["get", "isp", "-o", "name"]).await, "");

    let (success, printed, complaint) = clean_up(&world, &["--timeout=60s"]).await;
    assert!(success && printed.is_empty(), "a second time there is nothing to do: {printed}{complaint}");
}

#[tokio::test]
async fn what_is_left_when_the_time_is_over_is_named() {
    let world = world().await;
    let cluster = &world.cluster;
    let mut held = object("held");
    held["metadata"]["finalizers"] = serde_json::json!(["example.com/keep"]);
    apply(cluster, &held).await;
    let (success, _, complaint) = clean_up(&world, &["--timeout=5s"]).await;
    assert!(!success);
    assert!(
        complaint.contains("not everything was restored after 5s")
            && complaint.contains("ingresssourcepreserve/held"),
        "{complaint}"
    );
}
