//! End to end on a real cluster with Istio: pods get their mode before Istio's injector runs, the
//! application sees its peer's IP, policies match the right source IP, and missed pods are counted.

#![allow(clippy::unwrap_used, clippy::panic, reason = "helpers of tests fail as tests do")]

mod faults;
mod harness;
mod injector;
mod policies;
mod rotation;

use harness::{OBJECT, REDIRECT, Scenario, external};
use isp_lab::{Place, Protocol};
use isp_testkit::control_plane::SYSTEM;
use isp_testkit::sidecars::Counts;
use isp_testkit::web_lab::CLIENT;
use isp_testkit::{rights, until};

/// Two Deployments, one with an ordinary sidecar container and one with a native sidecar.
const APPLICATIONS: [(&str, &str); 2] = [("plain", "false"), ("native", "true")];

#[tokio::test]
async fn the_address_arrives_in_the_mesh() {
    let scenario = Scenario::up("mesh").await;
    for (name, native) in APPLICATIONS {
        scenario.run_application(name, native).await;
        scenario.expect_peer(name, REDIRECT.parse().unwrap()).await;
    }
    policies::apply(&scenario).await;
    policies::judge_wrongly(&scenario).await;

    scenario.install().await;
    scenario.preserve().await;
    // The Deployments existed before, so they are counted and listed.
    scenario.expect_sidecars("both are stale", Counts { matching: 2, consistent: 0 }).await;
    for (name, _) in APPLICATIONS {
        let said = scenario
            .lab
            .kubectl(["get", "isp", OBJECT, "-o", "jsonpath={.status.sidecars.restart[*].name}"])
            .await;
        assert!(said.unwrap().stdout.contains(name));
    }
    let events = [
        "get",
        "events",
        "-A",
        "--field-selector",
        "reason=StaleSidecars",
        "-o",
        "jsonpath={.items[*].message}{.items[*].note}",
    ];
    until("an Event says what to restart", async || {
        let events = scenario.lab.kubectl(events).await.unwrap().stdout;
        if events.contains("kubectl rollout restart -n shop deployment/") { Ok(()) } else { Err(events) }
    })
    .await;
    policies::judge_rightly(&scenario).await;
    for (name, _) in APPLICATIONS {
        scenario.expect_peer(name, REDIRECT.parse().unwrap()).await;
    }

    for (name, native) in APPLICATIONS {
        scenario.restart(name).await;
        scenario.expect_injected_transparent(name, native == "true").await;
        let gateway = scenario.gateway_address().await;
        scenario.expect_peer(name, gateway).await;
    }
    scenario.expect_sidecars("all are consistent", Counts { matching: 2, consistent: 2 }).await;
    policies::judge_rightly(&scenario).await;
    let seen = scenario.lab.ask(&Place::Client, Protocol::Http, &external("plain")).await.unwrap();
    assert_eq!(seen.forwarded_for(), Some(CLIENT));

    injector::decides_as_the_table_says(&scenario).await;
    faults::no_pod_is_refused_and_those_that_were_missed_are_counted(&scenario).await;
    rotation::no_pod_is_missed_while_certificates_change(&scenario).await;
    let webhook = rights::user(SYSTEM, "sourcepreserve-webhook");
    rights::Rights::take(&scenario.lab, &[webhook]).await.expect_enough_and_not_more(&scenario.lab);
}
