//! `kubectl isp plan` against what the operator then does: for each sample the plan is read from
//! its JSON output, the operator is run, and the API server's audit log has to show the same
//! writes, in the same order.

#![allow(clippy::unwrap_used, clippy::panic, reason = "helpers of tests fail as tests do")]

mod done;
mod effects;
mod order;
mod planned;
mod sample;
mod world;

use self::order::out_of_order;
use self::planned::{PlanOutput, Step};
use self::sample::Sample;
use self::world::World;

/// Plans the sample, has the operator carry it out, and compares. What was planned.
async fn compare(world: &World, sample: &Sample) -> PlanOutput {
    let before = world.state().await;
    let plan = world.plan(sample).await;
    let operator = world.carry_out(sample, &plan).await;
    let done = world.done(&operator);

    let name = sample.name();
    let mut planned: Vec<&Step> = plan.steps().map(|(step, _)| step).collect();
    let mut written: Vec<&Step> = done.iter().collect();
    planned.sort();
    written.sort();
    assert_eq!(written, planned, "{name}: what was written, and what was planned:\n{}", plan.text);
    let wrong = out_of_order(sample, &plan, &done);
    assert!(wrong.is_empty(), "{name}: {wrong:#?}\nplanned:\n{}\nwritten: {done:#?}", plan.text);
    effects::check(world, &plan).await;
    let again = world.plan(sample).await;
    let left: Vec<&Step> = again.steps().map(|(step, _)| step).collect();
    assert_eq!((again.code, left), (plan.code, Vec::new()), "{name}: nothing is left to do:\n{}", again.text);

    world.put_back(sample, operator).await;
    assert_eq!(world.state().await, before, "{name}: all is put back");
    plan
}

#[tokio::test]
async fn what_is_planned_for_a_sample_is_what_the_operator_does() {
    let world = World::start().await;
    let samples = sample::all();
    assert!(!samples.is_empty());
    for sample in &samples {
        world.prepare(sample).await;
        let plan = compare(&world, sample).await;
        assert_eq!(
            plan.code,
            Some(0),
            "{}: it was made the cluster that it needs:\n{}",
            sample.name(),
            plan.text
        );
        println!("{}: {} writes in {} moments", sample.name(), plan.steps().count(), plan.moments.len());
    }
}

/// What is taken away from the cluster that a sample needs, and what both have to say about it.
const FAULTS: [(&str, &[&str], &str); 5] = [
    ("minimal.yaml", &["delete", "endpointslice", "-n", "web", "frontend"], "NoIngressEndpoint"),
    (
        "ingress-nginx.yaml",
        &["label", "node", "edge-1", "edge-2", "node-role.kubernetes.io/ingress-"],
        "NoIngressNodes",
    ),
    (
        "istio-gateway.yaml",
        &["delete", "service", "-n", "istio-system", "istio-ingressgateway"],
        "ServiceMissing",
    ),
    (
        "patched-kube-proxy.yaml",
        &["delete", "daemonset", "-n", "kube-system", "kube-proxy"],
        "KubeProxyNotFound",
    ),
    // The last one: nothing takes the label away.
    (
        "beside.yaml",
        &[
            "label",
            "service",
            "-n",
            "ingress-nginx",
            "ingress-nginx-controller",
            "service.kubernetes.io/service-proxy-name=other",
        ],
        "Conflict",
    ),
];

#[tokio::test]
async fn without_kube_proxy_mode_beside_is_planned_and_done_as_with_it() {
    let world = World::start().await;
    let samples = sample::all();
    let sample = samples.iter().find(|sample| sample.name() == "beside.yaml").unwrap();
    world.prepare(sample).await;
    world.kubectl(&["delete", "daemonset", "-n", "kube-system", "kube-proxy"]).await;
    let plan = compare(&world, sample).await;
    assert_eq!(plan.code, Some(0), "{}", plan.text);
}

#[tokio::test]
async fn a_sample_that_would_not_become_ready_does_not_and_for_the_same_reason() {
    let world = World::start().await;
    let samples = sample::all();
    for (name, fault, reason) in FAULTS {
        let sample = samples.iter().find(|sample| sample.name() == name).unwrap();
        world.prepare(sample).await;
        world.kubectl(fault).await;
        let plan = compare(&world, sample).await;
        assert_eq!(plan.code, Some(2), "{name} without what it needs:\n{}", plan.text);
        let verdicts: Vec<_> = plan.verdicts.iter().map(|verdict| verdict.reason.as_deref()).collect();
        assert_eq!(verdicts, [Some(reason)], "{name}:\n{}", plan.text);
    }
}
