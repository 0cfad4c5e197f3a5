//! kube-proxy in ipvs mode binds every external address to its node, so a non-ingress node cannot
//! reach these addresses on the ingress node. Here kube-proxy runs on the kernel of a virtual
//! machine: direct, then behind the agent.

#![allow(clippy::unwrap_used, clippy::panic, reason = "helpers of tests fail as tests do")]

mod harness;

use harness::{HIDDEN, Machine, NARROWED, PATIENCE, cluster_ip, expect_acknowledged, lab};
use isp_lab::{Answer, Lab, Place};
use isp_testkit::preserve::{forget, preserve};

#[tokio::test]
async fn a_node_in_ipvs_mode_reaches_the_ingress_node_behind_the_agent() {
    let lab = lab("filter-ipvs").await;
    let (narrowed, hidden) = (cluster_ip(&lab, "narrowed").await, cluster_ip(&lab, "hidden").await);
    let everything = [NARROWED[0], NARROWED[1], HIDDEN, &narrowed, &hidden];
    let machine = Machine::boot(&lab).await;

    // Before kube-proxy starts, the addresses are reachable.
    for address in [NARROWED[0], NARROWED[1], HIDDEN] {
        machine.reaches_the_ingress_node(address).await;
    }

    // Without an agent, the machine binds the addresses and has no endpoint for them.
    machine.start_direct().await;
    machine.expect_bound("direct", &everything, &[]).await;
    PATIENCE.until("a ClusterIP works", async || machine.ask(&narrowed).await.peer()).await;
    for address in NARROWED {
        let answer = machine.ask(address).await;
        assert!(matches!(answer, Answer::Silent(_)), "{address} answered {answer:?}");
    }

    // Behind the agent, kube-proxy does not know the addresses, and unbinds them.
    preserve(&lab, "narrowed", "ClusterOnly").await;
    machine.hand_over_to_the_agent().await;
    machine.expect_bound("behind the agent", &[&narrowed, &hidden, HIDDEN], &NARROWED).await;
    expect_acknowledged(&lab, 1).await;
    for address in NARROWED {
        machine.reaches_the_ingress_node(address).await;
    }
    let answer = machine.ask(&narrowed).await;
    assert!(answer.peer().is_some(), "the ClusterIP answered {answer:?}");

    // It follows a later change of the view as well.
    preserve(&lab, "hidden", "Hidden").await;
    machine
        .expect_bound("with a hidden Service", &[&narrowed], &[NARROWED[0], NARROWED[1], HIDDEN, &hidden])
        .await;
    expect_acknowledged(&lab, 2).await;
    machine.reaches_the_ingress_node(HIDDEN).await;
    let answer = machine.ask(&hidden).await;
    assert!(matches!(answer, Answer::Silent(_)), "the hidden ClusterIP answered {answer:?}");

    // Without the objects, the node is as before.
    forget(&lab, "narrowed").await;
    forget(&lab, "hidden").await;
    machine.expect_bound("with nothing to hide", &everything, &[]).await;
    machine.stop_both().await;

    // The machine ends when its handle is dropped.
    assert_eq!(traces_of_a_machine(&lab).await, 2);
    drop(machine);
    PATIENCE
        .until("nothing is left of the machine", async || match traces_of_a_machine(&lab).await {
            0 => Ok(()),
            left => Err(left),
        })
        .await;
}

/// Counts the processes and network interfaces of the machine.
async fn traces_of_a_machine(lab: &Lab) -> usize {
    let mut lines = 0;
    for command in
        [&["pgrep", "-x", "qemu-system-x86"][..], &["ip", "-oneline", "link", "show", "type", "tun"]]
    {
        lines += lab.exec(&Place::ControlPlane, command).await.unwrap().stdout.lines().count();
    }
    lines
}
