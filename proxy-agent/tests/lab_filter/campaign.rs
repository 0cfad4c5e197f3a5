//! Campaigns: views change and programs are killed while Services and endpoints churn. When
//! everything has settled, the kernel has exactly the rules that a fresh kube-proxy behind a fresh
//! agent writes, and they match the API.
//!
//! The tests run a short form; `cargo xtask soak` runs them in full. `ISP_SOAK_SEED` repeats a
//! campaign.

mod served;
mod views;

use std::cell::Cell;
use std::collections::{BTreeMap, BTreeSet};
use std::env;
use std::time::{Duration, Instant};

use isp_api::view::View;
use isp_lab::ProxyMode;
use isp_lab::provision::KubernetesVersion::V1_37;
use isp_testkit::Patience;
use isp_testkit::churn::{Churn, insist};
use isp_testkit::random::Random;
use k8s_openapi::api::core::v1::Service;

use self::served::Served;
use self::views::{OBJECTS, SETTING, Stage, Views};
use crate::harness::{NODE, Scenario};
use crate::processes::{Behind, clean_up};

/// kube-proxy and the agent wait up to a minute before they retry.
const PATIENCE: Patience = Patience { limit: Duration::from_mins(4), pause: Duration::from_millis(250) };

/// The length of a campaign.
struct Length {
    steps: u64,
    services: usize,
    /// The most changes between two waits for everything to settle. kube-proxy takes longer to
    /// relist each time, up to a minute.
    together: usize,
}

impl Length {
    fn new(variable: &str) -> Self {
        match env::var(variable) {
            Ok(steps) => Self { steps: steps.parse().unwrap(), services: 2000, together: 40 },
            Err(_) => Self { steps: 6, services: 200, together: 4 },
        }
    }
}

/// A cluster of one node that is full of Services.
struct Campaign {
    name: &'static str,
    started: Instant,
    length: Length,
    scenario: Scenario,
    /// One Service of each object that the churn does not change.
    witnesses: Vec<Service>,
}

impl Campaign {
    async fn prepare(name: &'static str, length: Length) -> (Self, Churn, Random) {
        let started = Instant::now();
        let mut random = Random::of_campaign(name);
        let scenario = Scenario::bare(name, &[NODE], ProxyMode::Nftables).await;
        scenario.take_kube_proxy_away().await;
        let mut churn = Churn::new(&scenario.lab.client(), SETTING, random.fork());
        let mut witnesses = Vec::new();
        for (object, key) in OBJECTS {
            witnesses.push(churn.add_steady(&format!("of-{object}"), Some((key, object))).await);
        }
        churn.populate(length.services).await;
        let campaign = Self { name, started, length, scenario, witnesses };
        campaign.say(&format!("{} Services", campaign.length.services));
        (campaign, churn, random)
    }

    fn say(&self, figures: &str) {
        println!("{}, {:.0} s: {figures}", self.name, self.started.elapsed().as_secs_f32());
    }

    /// Waits until kube-proxy has read the view and the kernel has it.
    async fn is_followed(&self, views: &Views) {
        let relisted = async || views.have_come(Stage::Relisted).await;
        PATIENCE.until("kube-proxy reads the view", relisted).await;
        let in_kernel = async || {
            let claimed = views.have_come(Stage::Programmed).await;
            let seen = self.witnesses_are_seen(views).await;
            assert!(seen || !claimed, "the agent acknowledges what the kernel does not have");
            seen
        };
        PATIENCE.until("the kernel has the view", in_kernel).await;
        // kube-proxy does not resume a watch that ends within its first second; it relists.
        tokio::time::sleep(Duration::from_millis(1500)).await;
    }

    async fn witnesses_are_seen(&self, views: &Views) -> bool {
        let served = served::with_endpoints(&self.scenario.lab).await;
        views.of_each().into_iter().zip(&self.witnesses).all(|(view, witness)| {
            let spec = witness.spec.as_ref().unwrap();
            let port = &spec.ports.as_ref().unwrap()[0];
            let has = |address: &String| served.contains(&Served::at(address, port));
            let external = served::external_addresses(witness);
            let seen = (has(spec.cluster_ip.as_ref().unwrap()), external.iter().any(has));
            seen == (view != View::Hidden, view == View::Full)
        })
    }

    /// Waits until nothing changes any more, checks that the rules match the API, and returns them.
    async fn settle(&self, views: &Views, churn: &mut Churn) -> BTreeSet<String> {
        self.is_followed(views).await;
        let programmed = async || views.have_come(Stage::Programmed).await;
        PATIENCE.until("the agent acknowledges the view", programmed).await;
        let lab = &self.scenario.lab;
        // When these have arrived, everything before them has. With the second one, kube-proxy
        // removes the empty chains that it keeps for a second.
        for last in ["last-1", "last-2"] {
            let service = churn.add_steady(last, None).await;
            let spec = service.spec.unwrap();
            let served = Served::at(&spec.cluster_ip.unwrap(), &spec.ports.unwrap()[0]);
            let arrived = async || served::with_endpoints(lab).await.contains(&served);
            PATIENCE.until("kube-proxy has everything", arrived).await;
            tokio::time::sleep(Duration::from_secs(2)).await;
        }
        let rules = self.scenario.still_rules().await;
        let (wanted, found) = (served::by_api(lab).await, served::in_kernel(lab).await);
        let stale: Vec<_> = found.difference(&wanted).collect();
        let missing: Vec<_> = wanted.difference(&found).collect();
        assert!(stale.is_empty() && missing.is_empty(), "stale: {stale:?}, missing: {missing:?}");
        self.say(&format!("settled; {} ports are served as the API says", wanted.len()));
        rules
    }

    /// Checks that a fresh kube-proxy behind a fresh agent writes the same rules.
    async fn a_fresh_start_comes_to(&self, rules: &BTreeSet<String>) {
        clean_up(&self.scenario, V1_37).await;
        let left = served::in_kernel(&self.scenario.lab).await;
        assert!(left.is_empty(), "{left:?} is left of the campaign");
        let _fresh = Behind::start(&self.scenario, V1_37).await;
        self.scenario.expect_rules("a fresh start", rules).await;
        self.say(&format!("a fresh kube-proxy comes to the same {} rules and chains", rules.len()));
    }
}

/// Runs a future while the Services churn.
async fn during<T>(churn: &mut Churn, campaign: impl Future<Output = T>) -> T {
    let stop = Cell::new(false);
    let ending = async {
        let result = campaign.await;
        stop.set(true);
        result
    };
    tokio::join!(ending, churn.run(&stop)).0
}

#[tokio::test]
async fn a_view_that_changes_under_churn_leaves_nothing_stale() {
    let (campaign, mut churn, mut random) =
        Campaign::prepare("churn-views", Length::new("ISP_SOAK_VIEWS")).await;
    let mut views = Views::new(&campaign.scenario.lab.client(), random.fork()).await;
    let behind = Behind::start(&campaign.scenario, V1_37).await;
    campaign.is_followed(&views).await;

    let followed =
        during(&mut churn, Box::pin(change_views(&campaign, &behind, &mut views, &mut random))).await;
    let (ended, forced) = (behind.count("watches_ended_by_view").await, behind.count("relists_forced").await);
    campaign.say(&format!(
        "{} changes of the view, followed to their end {followed} times, {} that no kube-proxy could see, {ended} watches \
         ended, {forced} relists forced",
        views.real, views.void,
    ));
    assert!(forced <= ended && ended <= views.real, "a watch was ended without need");
    campaign.say(&format!("churn: {:?}", churn.operations));

    let rules = campaign.settle(&views, &mut churn).await;
    assert_eq!(behind.count("views").await, views.real + 1, "views of the agent, its first among them");
    drop(behind);
    campaign.a_fresh_start_comes_to(&rules).await;
}

/// Changes the view, and waits now and then until everything has settled. Returns how often.
async fn change_views(
    campaign: &Campaign,
    behind: &Behind<'_>,
    views: &mut Views,
    random: &mut Random,
) -> u32 {
    let (mut followed, mut changes, mut relists) = (0, 0, behind.count("relists_forced").await);
    let mut together = 1;
    while views.real < campaign.length.steps {
        views.change().await;
        // The agent gets objects and nodes from different watches; the wait keeps their changes in
        // order.
        let known = async || views.have_come(Stage::Known).await;
        PATIENCE.until("the agent knows of the change", known).await;
        if views.real - changes >= together || views.real == campaign.length.steps {
            campaign.is_followed(views).await;
            let (made, forced) = (views.real - changes, behind.count("relists_forced").await - relists);
            assert!((1..=made).contains(&forced), "{made} changes of the view forced {forced} relists");
            (followed, changes, relists) = (followed + 1, changes + made, relists + forced);
            together = 1 + random.below(campaign.length.together) as u64;
        }
        tokio::time::sleep(random.pause(800)).await;
    }
    followed
}

#[tokio::test]
async fn programs_killed_under_churn_leave_nothing_stale() {
    let (campaign, mut churn, mut random) =
        Campaign::prepare("churn-kills", Length::new("ISP_SOAK_KILLS")).await;
    let mut views = Views::new(&campaign.scenario.lab.client(), random.fork()).await;
    let mut behind = Behind::start(&campaign.scenario, V1_37).await;
    campaign.is_followed(&views).await;

    let (killed, ended) =
        during(&mut churn, Box::pin(kill(&campaign, &mut behind, &mut views, &mut random))).await;
    campaign.say(&format!(
        "killed {killed:?}; kube-proxy ended {ended} times by itself; {} changes of the view",
        views.real
    ));
    campaign.say(&format!("churn: {:?}", churn.operations));

    let rules = campaign.settle(&views, &mut churn).await;
    drop(behind);
    campaign.a_fresh_start_comes_to(&rules).await;
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Victim {
    Agent,
    KubeProxy,
    ApiServer,
}

/// Kills the programs, each equally often, in random order. Returns how often each was killed, and
/// how often kube-proxy exited by itself.
async fn kill(
    campaign: &Campaign,
    behind: &mut Behind<'_>,
    views: &mut Views,
    random: &mut Random,
) -> (BTreeMap<Victim, u32>, u32) {
    let lab = &campaign.scenario.lab;
    let (mut killed, mut ended, mut next) = (BTreeMap::new(), 0, Vec::new());
    for _ in 0..campaign.length.steps {
        tokio::time::sleep(random.pause(2500)).await;
        if random.chance(60) {
            views.change().await;
        }
        if next.is_empty() {
            next = vec![Victim::Agent, Victim::KubeProxy, Victim::ApiServer];
        }
        let victim = next.swap_remove(random.below(next.len()));
        match victim {
            Victim::Agent => behind.replace_agent(random.pause(1500)).await,
            Victim::KubeProxy => behind.replace_kube_proxy(random.pause(1500)).await,
            Victim::ApiServer => {
                // A program that is down already cannot be killed.
                insist(async || lab.client().apiserver_version().await).await.unwrap();
                lab.kill_component("kube-apiserver").await.unwrap();
            }
        }
        *killed.entry(victim).or_default() += 1;
        ended += u32::from(behind.revive().await);
    }
    (killed, ended)
}
