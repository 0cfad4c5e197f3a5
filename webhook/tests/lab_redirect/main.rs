//! End to end on a real cluster without Istio, as the docs tell it: pods with nginx, Envoy or
//! HAProxy as a proxy of their own get their init container, the proxy gets the connections, and
//! the application sees the client.

#![allow(clippy::unwrap_used, clippy::panic, reason = "helpers of tests fail as tests do")]

mod harness;
mod rights;
mod traffic;

use isp_api::names::REDIRECT_CONTAINER;
use isp_lab::docs;
use isp_testkit::control_plane::SYSTEM;
use isp_testkit::until;

use harness::{PROXIES, Proxy, World};

const WEBHOOK: &str = "deployment/sourcepreserve-webhook";

#[tokio::test]
async fn the_application_behind_its_own_proxy_sees_the_client() {
    const TEST: &str = "the_application_behind_its_own_proxy_sees_the_client";
    let [run, preserve, restart, rules, counted] = docs::commands("docs/redirect.md", TEST).unwrap();

    let world = World::up("redirect").await;
    world.run(&run).await;
    for proxy in &PROXIES {
        traffic::does_not_pass(&world, proxy).await;
    }
    world.run(&preserve).await;
    world.expect_redirected("all were there before", 0).await;
    world.run(&restart).await;
    world.expect_redirected("all are redirected", 3).await;
    assert_eq!(world.run(&counted).await.trim(), counted.printed().trim());

    let log = world.run(&rules).await;
    for line in rules.printed().lines().map(str::trim) {
        assert!(log.lines().any(|logged| logged.trim() == line), "{line:?} is not in\n{log}");
    }
    for proxy in &PROXIES {
        init_container_has_ended(&world, proxy).await;
        traffic::passes(&world, proxy).await;
        traffic::passes_on_the_way_out(&world, proxy).await;
        rights::are_those_of_the_author(&world, proxy).await;
    }

    a_missed_pod_is_counted(&world, &PROXIES[0]).await;
    for proxy in &PROXIES {
        the_application_sees_a_proxy_that_does_not_bind_the_client(&world, proxy).await;
    }
}

async fn init_container_has_ended(world: &World, proxy: &Proxy) {
    let pod = world.pod(proxy).await;
    let statuses = pod.status.unwrap().init_container_statuses.unwrap();
    // The first of them, before a proxy that is a native sidecar.
    let ours = &statuses[0];
    assert_eq!(ours.name, REDIRECT_CONTAINER);
    let end = ours.state.clone().unwrap().terminated.unwrap();
    assert_eq!((end.exit_code, ours.restart_count), (0, 0), "{end:?}");
    let name = pod.metadata.name.unwrap();
    let log = world.kubectl(["logs", &name, "-c", REDIRECT_CONTAINER]).await;
    assert!(log.contains("table ip ") && log.contains("table ip6 ") && log.contains("15006"), "{log}");
}

/// The pod starts without the webhook, and its proxy gets nothing.
async fn a_missed_pod_is_counted(world: &World, proxy: &Proxy) {
    scale_webhook(world, 0).await;
    world.restart(proxy).await;
    world.expect_redirected("one was missed", 2).await;
    traffic::does_not_pass(world, proxy).await;
    let stale = world.kubectl(["get", "isp", "-o", "jsonpath={.items[0].status.sidecars.restart[*].name}"]);
    assert_eq!(stale.await, proxy.name);

    scale_webhook(world, 2).await;
    // API servers may need a moment to find the new replicas.
    until("a new pod is redirected", async || {
        world.restart(proxy).await;
        let inits = world.pod(proxy).await.spec.unwrap().init_containers.unwrap_or_default();
        inits.iter().any(|init| init.name == REDIRECT_CONTAINER)
    })
    .await;
    world.expect_redirected("all are redirected again", 3).await;
    traffic::passes(world, proxy).await;
}

async fn the_application_sees_a_proxy_that_does_not_bind_the_client(world: &World, proxy: &Proxy) {
    world.unconfigure(proxy, proxy.binds_client).await;
    world.restart(proxy).await;
    traffic::passes_with_the_pods_address(world, proxy).await;
}

async fn scale_webhook(world: &World, replicas: u32) {
    let lab = &world.lab;
    let wanted = format!("--replicas={replicas}");
    lab.kubectl(["-n", SYSTEM, "scale", WEBHOOK, &wanted]).await.unwrap();
    lab.kubectl(["-n", SYSTEM, "rollout", "status", WEBHOOK, "--timeout=120s"]).await.unwrap();
    if replicas == 0 {
        let pods = "--selector=app.kubernetes.io/name=sourcepreserve-webhook";
        lab.kubectl(["-n", SYSTEM, "wait", "--for=delete", "pod", pods, "--timeout=120s"]).await.unwrap();
    }
}
