//! The rules do what kube-proxy does: the trace of generated packets through compiled rulesets
//! agrees with a naive oracle, for every history of changes.
//!
//! `ISP_ORACLE_CASES` sets the number of cases, `ISP_ORACLE_SEED` the first seed.

#![allow(clippy::unwrap_used, clippy::panic, reason = "helpers of tests fail as tests do")]

mod cases;
#[path = "../common/mod.rs"]
mod common;
mod histories;
mod oracle;

use std::collections::BTreeSet;

use cases::Dice;
use isp_dataplane::{
    compile::compile,
    nft::Family,
    plane::Plane,
    ruleset::Ruleset,
    trace::{Outcome, Packet, trace},
};

fn number(variable: &str, otherwise: u64) -> u64 {
    std::env::var(variable).ok().map_or(otherwise, |text| text.parse().unwrap())
}

/// Runs a test for one in so many seeds; names the seed of one that fails.
fn for_each_seed(one_in: u64, run: impl Fn(&mut Dice, Family)) {
    let first = number("ISP_ORACLE_SEED", 1);
    let cases = number("ISP_ORACLE_CASES", 2000).div_ceil(one_in);
    println!("{cases} cases from ISP_ORACLE_SEED={first}");
    for seed in first..first + cases {
        let named = Named(seed);
        let family = if seed % 2 == 0 { Family::Ip } else { Family::Ip6 };
        run(&mut Dice::new(seed), family);
        std::mem::forget(named);
    }
}

/// Says which seed was running when a test fails.
struct Named(u64);

impl Drop for Named {
    fn drop(&mut self) {
        println!("repeat this case: ISP_ORACLE_SEED={} ISP_ORACLE_CASES=1", self.0);
    }
}

fn traced(ruleset: &Ruleset, node: &isp_dataplane::model::Node, packet: &Packet) -> BTreeSet<Outcome> {
    let stories = trace(ruleset, &node.addresses, packet).unwrap();
    let outcomes: BTreeSet<Outcome> = stories.iter().map(|story| story.outcome).collect();
    assert_eq!(outcomes.len(), stories.len(), "an endpoint has two slots: {packet:?}\n{stories:#?}");
    outcomes
}

fn explain(ruleset: &Ruleset, node: &isp_dataplane::model::Node, packet: &Packet) -> String {
    let stories = trace(ruleset, &node.addresses, packet).unwrap();
    let told: Vec<String> = stories.iter().map(|story| story.tell(ruleset.table()).join("\n  ")).collect();
    told.join("\n\n  ")
}

#[test]
fn every_packet_ends_where_the_oracle_says() {
    let mut seen = BTreeSet::new();
    let seen_kinds = std::cell::RefCell::new(&mut seen);
    for_each_seed(1, |dice, family| {
        let node = cases::node(dice, family);
        let services = cases::services(dice, family);
        let mut plane = Plane::new(common::settings(family), node.clone());
        for each in &services {
            plane.set(&each.name, compile(&each.service, &node, each.view, family));
        }
        let ruleset = common::ruleset(&plane);
        for _ in 0..12 {
            let packet = cases::packet(dice, family);
            let expected = oracle::outcomes(&services, &node, &packet);
            assert!(
                traced(&ruleset, &node, &packet) == expected,
                "{packet:#?}\nexpected {expected:?}\n\n  {}",
                explain(&ruleset, &node, &packet)
            );
            seen_kinds.borrow_mut().extend(expected.iter().map(kind));
        }
    });
    let all = ["untouched", "kept", "masqueraded", "rejected", "dropped"];
    assert_eq!(seen, BTreeSet::from(all), "the generated cases do not reach every outcome");
}

fn kind(outcome: &Outcome) -> &'static str {
    match outcome {
        Outcome::Untouched => "untouched",
        Outcome::Redirected { masqueraded: false, .. } => "kept",
        Outcome::Redirected { masqueraded: true, .. } => "masqueraded",
        Outcome::Rejected => "rejected",
        Outcome::Dropped => "dropped",
    }
}
