//! The agent of mode Beside is killed at random moments, the API server goes away, and other
//! programs delete the tables, while Services and endpoints change at random. In the end, the
//! kernel has exactly the table that a fresh agent writes.
//!
//! The test runs a short form; `cargo xtask soak beside-kills` runs it in full. `ISP_SOAK_SEED`
//! repeats a campaign.

#![allow(clippy::unwrap_used, clippy::panic, reason = "helpers of tests fail as tests do")]

mod table;

use std::cell::Cell;
use std::collections::BTreeMap;
use std::env;
use std::time::Instant;

use isp_api::IngressSourcePreserve;
use isp_api::names::SERVICE_LABEL;
use isp_api::view::View;
use isp_lab::{Lab, Place};
use isp_testkit::beside::{Agents, TABLE, create_object_as};
use isp_testkit::churn::{Churn, Setting, insist};
use isp_testkit::random::Random;
use isp_testkit::{preserve, until};
use k8s_openapi::api::core::v1::Node;
use kube::Api;
use kube::api::{Patch, PatchParams};
use serde_json::json;
use tokio::time::sleep;

use self::table::Table;

const NODE: &str = "work-1";
const OBJECTS: [&str; 2] = ["one", "two"];
const SETTING: Setting =
    Setting { node: NODE, labels: &[(SERVICE_LABEL, OBJECTS[0]), (SERVICE_LABEL, OBJECTS[1])] };
/// The table of the fresh agent.
const FRESH: &str = "fresh";

/// The length of the campaign.
struct Length {
    kills: usize,
    services: usize,
}

impl Length {
    fn new() -> Self {
        match env::var("ISP_SOAK_BESIDE_KILLS") {
            Ok(kills) => Self { kills: kills.parse().unwrap(), services: 200 },
            Err(_) => Self { kills: 20, services: 40 },
        }
    }
}

#[tokio::test]
async fn whatever_is_killed_the_table_is_in_the_end_as_a_fresh_agent_writes_it() {
    let (length, began) = (Length::new(), Instant::now());
    let mut random = Random::of_campaign("beside-kills");
    let lab = Lab::builder().name("beside-kills").nodes([NODE]).up().await.unwrap();
    let logs = tempfile::tempdir().unwrap();
    preserve::install(&lab).await;
    for object in OBJECTS {
        let services = json!({"namespace": "default", "selector": {"matchLabels": {SERVICE_LABEL: object}}});
        create_object_as(&lab, object, vec![services]).await;
    }
    let mut churn = Churn::new(&lab.client(), SETTING, random.fork());
    churn.populate(length.services).await;
    let say = |what: &str| println!("beside-kills, {:.0} s: {what}", began.elapsed().as_secs_f32());
    say(&format!("{} Services", length.services));

    let mut agents = Agents::new(&lab, env!("CARGO_BIN_EXE_proxy-agent"), logs.path());
    agents.start(NODE).await;
    let stop = Cell::new(false);
    let campaign = async {
        let done = disturb(&lab, &mut agents, &mut random, length.kills).await;
        stop.set(true);
        done
    };
    let (done, ()) = tokio::join!(campaign, churn.run(&stop));
    say(&format!("{done:?}"));
    say(&format!("churn: {:?}", churn.operations));

    agents.wait_until_ready(NODE).await;
    wait_until_everything_arrived(&lab, &agents, &mut churn).await;
    for family in ["ip", "ip6"] {
        // Elements that no packet finds are deleted a moment later.
        until("nothing is left of a change", async || {
            Table::read(&list(&lab, family, TABLE).await).expect_settled()
        })
        .await;
    }
    agents.end(NODE).await;
    agents.set_options(&["--table", FRESH]);
    agents.start_and_wait(NODE).await;
    for family in ["ip", "ip6"] {
        let kept = Table::read(&list(&lab, family, TABLE).await);
        let fresh = Table::read(&list(&lab, family, FRESH).await);
        assert!(family == "ip6" || fresh.elements["cluster-ips"].len() > 1, "the table is empty");
        let size = fresh.size();
        kept.expect_as_fresh(&fresh);
        say(&format!("table {family} has the same {size} elements as a fresh one"));
    }
}

/// Waits until the agent has seen every change. Each kind is watched on its own, and a watch that
/// failed comes back later than the others; so there is a last change of each kind.
async fn wait_until_everything_arrived(lab: &Lab, agents: &Agents<'_>, churn: &mut Churn) {
    // Another node may have to hide the Services of the object.
    set_role(lab, Some("")).await;
    let last = churn.add_steady("last", Some(SETTING.labels[0])).await;
    let address = last.spec.unwrap().cluster_ip.unwrap();
    until("the last Service has its endpoint", async || {
        let listing = list(lab, "ip", TABLE).await;
        if listing.is_empty() {
            return false;
        }
        let endpoints = Table::read(&listing).elements.remove("endpoints").unwrap_or_default();
        endpoints.iter().any(|endpoint| endpoint.contains(&address))
    })
    .await;
    set_role(lab, None).await;
    agents.wait_for_views(NODE, |view| view.view != View::Full).await;
    set_role(lab, Some("")).await;
    agents.wait_for_views(NODE, |view| view.view == View::Full).await;
    let objects: Api<IngressSourcePreserve> = Api::all(lab.client());
    for object in OBJECTS {
        let generation = objects.get(object).await.unwrap().metadata.generation.unwrap();
        agents.wait_for_views(NODE, |view| view.object != object || view.generation == generation).await;
    }
}

/// Makes the node an ingress node, or not any more.
async fn set_role(lab: &Lab, role: Option<&str>) {
    let labels = json!({"node-role.kubernetes.io/ingress": role});
    let patch = Patch::Merge(json!({"metadata": {"labels": labels}}));
    let nodes: Api<Node> = Api::all(lab.client());
    insist(async || nodes.patch(NODE, &PatchParams::default(), &patch).await).await.unwrap();
}

/// What was done to the agent, and how often.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Disturbance {
    Kill,
    ApiOutage,
    TableDeleted,
    RulesetFlushed,
    NodeLabelled,
    ViewChanged,
}

/// Kills the agent so many times, and does other things in between.
async fn disturb(
    lab: &Lab,
    agents: &mut Agents<'_>,
    random: &mut Random,
    kills: usize,
) -> BTreeMap<Disturbance, usize> {
    let mut done = BTreeMap::new();
    while done.get(&Disturbance::Kill) < Some(&kills) {
        let next = match random.below(100) {
            0..3 => Disturbance::ApiOutage,
            3..6 => Disturbance::TableDeleted,
            6..8 => Disturbance::RulesetFlushed,
            8..13 => Disturbance::NodeLabelled,
            13..18 => Disturbance::ViewChanged,
            _ => Disturbance::Kill,
        };
        match next {
            Disturbance::Kill => {
                // An agent needs about 100 ms for its first batch, so this is often before it and
                // often long after it.
                let most = random.pick(&[150, 400, 1500]);
                sleep(random.pause(most)).await;
                agents.kill(NODE);
                if random.chance(30) {
                    sleep(random.pause(500)).await;
                }
                agents.start(NODE).await;
            }
            Disturbance::ApiOutage => {
                lab.stop_component("kube-apiserver").await.unwrap();
                sleep(random.pause(2000)).await;
                lab.start_component("kube-apiserver").await.unwrap();
            }
            Disturbance::TableDeleted => {
                // There is none if the agent has not loaded it yet.
                let family = random.pick(&["ip", "ip6"]);
                nft(lab, &["delete", "table", family, TABLE]).await;
            }
            Disturbance::RulesetFlushed => {
                assert!(nft(lab, &["flush", "ruleset"]).await, "the ruleset was not flushed");
            }
            Disturbance::NodeLabelled => {
                set_role(lab, random.pick(&[None, Some("")])).await;
            }
            Disturbance::ViewChanged => {
                let object = random.pick(&OBJECTS);
                let elsewhere = random.pick(&["ClusterOnly", "Hidden"]);
                let patch = Patch::Merge(json!({"spec": {"elsewhere": elsewhere}}));
                let objects: Api<IngressSourcePreserve> = Api::all(lab.client());
                insist(async || objects.patch(object, &PatchParams::default(), &patch).await).await.unwrap();
            }
        }
        *done.entry(next).or_default() += 1;
    }
    done
}

/// Runs `nft` on the node, and returns whether it succeeded.
async fn nft(lab: &Lab, arguments: &[&str]) -> bool {
    let command = [&["nft"], arguments].concat();
    lab.exec(&Place::Node(NODE.to_owned()), &command).await.unwrap().success
}

/// A table of the node in JSON; empty if there is none.
async fn list(lab: &Lab, family: &str, table: &str) -> String {
    let list = ["nft", "-j", "list", "table", family, table];
    lab.exec(&Place::Node(NODE.to_owned()), &list).await.unwrap().stdout
}
