//! Hostile events under continuous traffic: the last ingress node disappears, upgrades cannot
//! start, kube-proxy comes back, someone removes an affinity, our objects are forged or deleted. No
//! request may fail, except where a case removes every path to the application.
//!
//! Every test run uses nftables mode; `cargo xtask soak hostile` also runs iptables mode.

#![allow(clippy::unwrap_used, clippy::panic, reason = "helpers of tests fail as tests do")]

mod foreign;
mod ingress;
mod kube_proxy;
mod upgrade;

use std::pin::Pin;
use std::time::{Duration, Instant};

use isp_lab::ProxyMode;
use isp_testkit::traffic::{STEADY, Traffic};
use isp_testkit::web_lab::{AGENT_IMAGE, OBJECT, WebLab, addresses, operator, sample};
use nix::sys::signal::Signal;

/// The kube-proxy modes to test.
fn modes() -> Vec<ProxyMode> {
    match std::env::var("ISP_SOAK_HOSTILE") {
        Ok(_) => vec![ProxyMode::Nftables, ProxyMode::Iptables],
        Err(_) => vec![ProxyMode::Nftables],
    }
}

/// The interval between requests of each client; 10 ms in a soak run.
fn interval() -> Duration {
    if std::env::var_os("ISP_SOAK_HOSTILE").is_some() { STEADY } else { Duration::from_millis(50) }
}

#[tokio::test]
async fn what_a_cluster_does_to_us_does_not_hurt_its_users() {
    for mode in modes() {
        let scenario = WebLab::up_in("hostile", env!("CARGO_BIN_EXE_operator"), mode).await;
        scenario.install_without_operator().await;
        let kubeconfig = operator::kubeconfig(&scenario).await;
        let mut operator = operator::run(&scenario, &kubeconfig, AGENT_IMAGE, "first.log");
        scenario.lab.kubectl(["apply", "-f", &sample()]).await.unwrap();
        scenario.wait_until_ready().await;
        addresses::arrive(&scenario).await;

        let traffic = Traffic::start(&scenario, interval()).await;
        timed(
            "the last ingress node is unlabelled",
            Box::pin(ingress::the_last_one_is_unlabelled(&scenario)),
        )
        .await;
        timed("no node is selected", Box::pin(ingress::none_is_selected(&scenario))).await;
        timed("foreign objects", Box::pin(foreign::objects_are_left_alone(&scenario))).await;
        timed("a forged annotation", Box::pin(foreign::an_annotation_ends_nothing(&scenario, &mut operator)))
            .await;
        operator.signal(Signal::SIGTERM);
        assert!(operator.end().await.success(), "{}", operator.complained());
        let pulled = Box::pin(upgrade::cannot_be_pulled(&scenario, &kubeconfig));
        timed("an upgrade that cannot be pulled", pulled).await;
        let mut operator = operator::run(&scenario, &kubeconfig, AGENT_IMAGE, "second.log");
        scenario.wait_until_ready().await;
        timed("an upgrade that does not start", Box::pin(upgrade::does_not_start(&scenario))).await;
        traffic.expect_no_failure().await;

        let traffic = Traffic::start(&scenario, interval()).await;
        timed("kube-proxy comes back once", Box::pin(kube_proxy::comes_back_once(&scenario))).await;
        timed("and again and again", Box::pin(kube_proxy::is_not_fought(&scenario))).await;
        traffic.expect_no_failure_but(|client, after| kube_proxy::drops_one(mode, client, after)).await;

        // From here on requests may fail, because the cases cut off the application.
        timed("the ingress node dies", Box::pin(ingress::the_application_moves(&scenario))).await;
        scenario.lab.kubectl(["delete", "isp", OBJECT, "--timeout=120s"]).await.unwrap();
        foreign::are_still_there(&scenario).await;
        operator.signal(Signal::SIGTERM);
        assert!(operator.end().await.success(), "{}", operator.complained());
    }
}

async fn timed(what: &str, case: Pin<Box<impl Future<Output = ()>>>) {
    let began = Instant::now();
    println!("{what}");
    case.await;
    println!("  {:.1} s", began.elapsed().as_secs_f64());
}

/// Long enough for a faulty operator to do the wrong thing.
const A_WHILE: Duration = Duration::from_secs(10);
