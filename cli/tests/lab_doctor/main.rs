//! `doctor` on a real cluster with a real mesh: policies that fail before the project is installed,
//! nothing wrong when all is well, and the fault when there is one; the same from a dump as from
//! the cluster. With `ISP_DOCTOR_DUMPS=1` the dumps of `tests/doctor` are taken anew.

#![allow(clippy::unwrap_used, clippy::panic, reason = "helpers of tests fail as tests do")]

mod dump;
mod harness;

use isp_testkit::until;
use serde_json::Value;

use self::dump::{keep, take};
use self::harness::{Scenario, doctor};

const GATEWAY: &str = "istio-system/istio-ingressgateway";

/// The codes, in their order.
fn codes(found: &Value) -> Vec<&str> {
    found.as_array().unwrap().iter().map(|finding| finding["code"].as_str().unwrap()).collect()
}

/// What is said about the cluster and about a dump of it, as soon as both have come to rest: agents
/// and operator follow a change within seconds.
async fn expect(scenario: &Scenario, arguments: &[&str], what: &str, holds: impl Fn(&[&str]) -> bool) {
    until(what, async || {
        let (code, live) = doctor(&scenario.lab.kubeconfig(), arguments).await;
        let directory = tempfile::tempdir().unwrap();
        take(&scenario.lab, directory.path()).await;
        let from_dump = [arguments, &["--from-dir", directory.path().to_str().unwrap()]].concat();
        let dumped = doctor(&scenario.lab.kubeconfig(), &from_dump).await;
        let wrong = live.as_array().unwrap().iter().any(|finding| finding["severity"] != "note");
        assert_eq!(code, Some(if wrong { 2 } else { 0 }), "{what}: {live:#}");
        let both = holds(&codes(&live)) && dumped == (code, live.clone());
        if both { Ok(()) } else { Err(format!("{live:#}\nfrom a dump: {:#}", dumped.1)) }
    })
    .await;
}

#[tokio::test]
async fn it_finds_what_is_wrong_and_nothing_else() {
    let scenario = Scenario::up("doctor").await;
    // Nobody has asked for anything, and its policies cannot tell clients apart.
    let told = |codes: &[&str]| codes == ["ISP701", "ISP702", "ISP315"];
    expect(&scenario, &[], "untouched", told).await;
    let judged = |codes: &[&str]| codes == ["ISP701", "ISP702", "ISP307"];
    expect(&scenario, &["--service", GATEWAY], "untouched, asked", judged).await;
    keep(&scenario.lab, "untouched").await;

    scenario.install().await;
    scenario.preserve().await;
    expect(&scenario, &[], "pods of before", |codes| codes == ["ISP604", "ISP315"]).await;
    scenario.restart_application().await;
    expect(&scenario, &[], "healthy", |codes| codes == ["ISP315"]).await;
    let silent = |codes: &[&str]| codes.is_empty();
    expect(&scenario, &["--service", GATEWAY], "healthy, asked", silent).await;
    keep(&scenario.lab, "healthy").await;

    scenario.lose_endpoint().await;
    let dark = |codes: &[&str]| codes.first() == Some(&"ISP303");
    expect(&scenario, &["--service", GATEWAY], "no endpoint", dark).await;
}
