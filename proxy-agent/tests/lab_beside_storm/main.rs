//! Everything that happens to agents of mode Beside in a cluster's life, under traffic: restarts,
//! kills, changed labels, bursts of changed endpoints, an API server that is gone, and somebody's
//! `nft flush ruleset`.
//!
//! The test runs a short form; `cargo xtask soak beside-storm` runs it in full.

#![allow(clippy::unwrap_used, reason = "helpers of tests fail as tests do")]

mod written;

use std::env;
use std::time::{Duration, Instant};

use isp_api::view::View;
use isp_lab::{Answer, Place, Protocol};
use isp_testkit::beside::{Agents, Steps, TABLE, create_object, has_table, wait_for_kube_proxy};
use isp_testkit::traffic::Traffic;
use isp_testkit::web_lab::{CLIENT, EDGE, ELSEWHERE, EXTERNAL, NODE_PORT, WebLab, pod_on};
use isp_testkit::{answers, preserve};
use tokio::time::sleep;

use self::written::Written;

const NODES: [&str; 3] = [EDGE, ELSEWHERE[0], ELSEWHERE[1]];
/// How often each client sends a request.
const INTERVAL: Duration = Duration::from_millis(20);
/// The same where an outage is measured.
const CLOSELY: Duration = Duration::from_millis(10);
/// The longest outage after another program has flushed the ruleset.
const FLUSHED: Duration = Duration::from_secs(1);
/// Clients go on for a while after a flush.
const AFTERWARDS: Duration = Duration::from_secs(2);
const ALL: [&str; 3] = ["web/emptied", "web/frontend", "web/moving"];

/// The length of the storm.
struct Length {
    label_flips: usize,
    endpoint_changes: usize,
    api_outage: Duration,
}

impl Length {
    fn new() -> Self {
        if env::var_os("ISP_SOAK_STORM").is_some() {
            Self { label_flips: 200, endpoint_changes: 5000, api_outage: Duration::from_secs(20) }
        } else {
            Self { label_flips: 6, endpoint_changes: 500, api_outage: Duration::from_secs(3) }
        }
    }
}

/// The lab, its agents and the Services they serve.
struct Storm<'a> {
    web: &'a WebLab,
    agents: Agents<'a>,
    frontend: Steps<'a>,
    moving: Written<'a>,
    emptied: Written<'a>,
    length: Length,
    started: Instant,
}

#[tokio::test]
async fn no_request_fails_whatever_happens_to_agents_labels_endpoints_and_the_api_server() {
    let started = Instant::now();
    let web = WebLab::up("beside-storm", env!("CARGO_BIN_EXE_proxy-agent")).await;
    preserve::install(&web.lab).await;
    create_object(&web.lab, &[("web", "frontend"), ("web", "moving"), ("web", "emptied")]).await;
    let mut storm = Storm {
        web: &web,
        agents: Agents::new(&web.lab, env!("CARGO_BIN_EXE_proxy-agent"), web.logs()),
        frontend: Steps { lab: &web.lab, namespace: "web", service: "frontend" },
        moving: Written::create(&web, "moving", "192.0.2.52", 0b111).await,
        emptied: Written::create(&web, "emptied", "192.0.2.53", 0b001).await,
        length: Length::new(),
        started,
    };
    for address in ["192.0.2.52", "192.0.2.53"] {
        web.lab.route(address.parse().unwrap(), &[EDGE]).await.unwrap();
    }
    storm.begin().await;
    let traffic = storm.traffic().await;
    storm.agents_restart().await;
    storm.agents_are_killed_while_endpoints_change().await;
    storm.endpoints_change_in_a_burst().await;
    storm.the_last_endpoint_goes_and_comes_back().await;
    storm.a_node_becomes_an_ingress_node_and_no_longer_is_one().await;
    storm.the_api_server_is_gone_while_endpoints_change().await;
    storm.labels_flip().await;
    traffic.expect_no_failure().await;
    storm.say("no request failed");

    storm.flushed_rulesets_are_repaired().await;

    storm.agents.set_options(&["--own-tables"]);
    storm.agents_restart().await;
    let outages = storm.rulesets_are_flushed().await;
    storm.say(&format!("`nft flush ruleset` with --own-tables: requests failed for {outages:?}"));
    assert!(outages.is_empty(), "{outages:?}");
    storm.owned_tables_outlive_their_agent().await;
}

impl Storm<'_> {
    /// The agent repairs a flushed ruleset in time. On a busy machine it may have to wait for a
    /// processor, so it gets three chances.
    async fn flushed_rulesets_are_repaired(&self) {
        let mut is_in_time = false;
        for _ in 0..3 {
            let outages = self.rulesets_are_flushed().await;
            self.say(&format!("`nft flush ruleset`: requests failed for {outages:?}"));
            is_in_time = outages.iter().all(|(_, outage)| *outage <= FLUSHED);
            if is_in_time {
                break;
            }
        }
        assert!(is_in_time, "requests failed for longer than {FLUSHED:?} each time");
    }

    fn say(&self, what: &str) {
        println!("storm, {:.0} s: {what}", self.started.elapsed().as_secs_f32());
    }

    /// Hands the Service over from kube-proxy.
    async fn begin(&mut self) {
        self.frontend.preserve(true).await;
        for node in NODES {
            self.agents.start(node).await;
        }
        self.agents.wait_until_served(&ALL).await;
        self.frontend.ignore(true).await;
        wait_for_kube_proxy(&self.web.lab, &NODES, &self.web.cluster_ip, false).await;
        self.frontend.set_policy("Local").await;
        let target = format!("{EXTERNAL}:80");
        let is_kept = |answer: &Answer| answer.peer() == Some(CLIENT);
        answers::until(&self.web.lab, "the client's IP", &Place::Client, (Protocol::Http, &target), is_kept)
            .await;
    }

    /// The steady clients, and those of the Service whose endpoints change.
    async fn traffic(&self) -> Traffic {
        let mut traffic = Traffic::start(self.web, INTERVAL).await;
        let inside = format!("{}:80", self.moving.cluster_ip);
        let places = [
            (Place::Client, "192.0.2.52:80"),
            (pod_on(ELSEWHERE[0]), &inside),
            (Place::Node(ELSEWHERE[1].to_owned()), &inside),
        ];
        for (place, target) in places {
            let name = format!("{place} to the moving endpoints");
            traffic.add(self.web, &place, &name, target, INTERVAL).await;
        }
        self.say("traffic runs");
        traffic
    }

    async fn agents_restart(&mut self) {
        for node in NODES {
            self.agents.end(node).await;
            self.agents.start_and_wait(node).await;
        }
        self.say("agents restarted");
    }

    async fn agents_are_killed_while_endpoints_change(&mut self) {
        let Self { agents, moving, .. } = self;
        let kill = async {
            for node in NODES.into_iter().chain(NODES) {
                sleep(Duration::from_millis(70)).await;
                agents.kill(node);
                // The endpoints change while there is no agent.
                sleep(Duration::from_millis(70)).await;
                agents.start(node).await;
            }
        };
        tokio::join!(moving.change(200), kill);
        self.moving.settle(&NODES, 1).await;
        self.say("agents were killed while endpoints changed");
    }

    async fn endpoints_change_in_a_burst(&self) {
        let began = Instant::now();
        self.moving.change(self.length.endpoint_changes).await;
        let (written, changes) = (began.elapsed(), self.length.endpoint_changes);
        self.moving.settle(&NODES, 2).await;
        let behind = began.elapsed().saturating_sub(written);
        self.say(&format!("{changes} changes of endpoints in {written:.1?}, followed by {behind:.1?}"));
    }

    /// Without endpoints, clients are refused at once.
    async fn the_last_endpoint_goes_and_comes_back(&self) {
        let lab = &self.web.lab;
        let inside = format!("{}:80", self.emptied.cluster_ip);
        let ways = [
            (Place::Client, "192.0.2.53:80"),
            (pod_on(ELSEWHERE[0]), &inside),
            (Place::Node(ELSEWHERE[1].to_owned()), &inside),
        ];
        for (bits, is_served) in [(0b000, false), (0b001, true)] {
            for slice in 0..2 {
                self.emptied.try_to_write(slice, bits).await.unwrap();
            }
            let is_so = |answer: &Answer| match answer {
                Answer::Seen(_) => is_served,
                Answer::Silent(reason) => !is_served && reason == "refused",
            };
            for (place, target) in &ways {
                answers::until(lab, "the last endpoint", place, (Protocol::Http, target), is_so).await;
                // It stays so.
                let answer = lab.ask(place, Protocol::Http, target).await.unwrap();
                assert!(is_so(&answer), "{place}: {answer:?}");
            }
        }
        self.say("the last endpoint went and came back; clients were refused meanwhile");
    }

    async fn a_node_becomes_an_ingress_node_and_no_longer_is_one(&self) {
        let role = "node-role.kubernetes.io/ingress";
        let steps = [(format!("{role}="), View::Full), (format!("{role}-"), View::ClusterOnly)];
        for (label, view) in steps {
            self.web.lab.kubectl(["label", "node", ELSEWHERE[0], &label]).await.unwrap();
            self.agents.wait_for_view(ELSEWHERE[0], view).await;
        }
        self.say("a node became an ingress node and no longer is one");
    }

    async fn the_api_server_is_gone_while_endpoints_change(&self) {
        let lab = &self.web.lab;
        let changes = async {
            let began = Instant::now();
            let mut refused = 0;
            while began.elapsed() < self.length.api_outage + Duration::from_secs(1) {
                let written = self.moving.try_to_write(0, 0b111).await;
                refused += usize::from(written.is_err());
                sleep(Duration::from_millis(50)).await;
            }
            refused
        };
        let outage = async {
            sleep(Duration::from_millis(500)).await;
            lab.stop_component("kube-apiserver").await.unwrap();
            sleep(self.length.api_outage).await;
            lab.start_component("kube-apiserver").await.unwrap();
        };
        let (refused, ()) = tokio::join!(changes, outage);
        assert!(refused > 0, "the API server was never gone");
        let back = Instant::now();
        self.moving.settle(&NODES, 1).await;
        let outage = self.length.api_outage;
        self.say(&format!(
            "the API server was gone for {outage:?}; the last change came {:.1?} after",
            back.elapsed()
        ));
    }

    /// Each flip is a whole way back to kube-proxy and forth again.
    async fn labels_flip(&self) {
        let (lab, began) = (&self.web.lab, Instant::now());
        for flip in 0..self.length.label_flips {
            if flip > 0 && flip.is_multiple_of(50) {
                self.say(&format!("labels flipped {flip} times"));
            }
            self.frontend.ignore(false).await;
            wait_for_kube_proxy(lab, &NODES, &self.web.cluster_ip, true).await;
            self.frontend.preserve(false).await;
            self.agents.wait_until_served(&["web/emptied", "web/moving"]).await;
            self.frontend.preserve(true).await;
            self.agents.wait_until_served(&ALL).await;
            self.frontend.ignore(true).await;
            wait_for_kube_proxy(lab, &NODES, &self.web.cluster_ip, false).await;
        }
        self.say(&format!("labels flipped {} times in {:.1?}", self.length.label_flips, began.elapsed()));
    }

    /// Flushes the ruleset of two nodes, and measures how long requests to Services of ours failed
    /// there. kube-proxy's table and the lab's own are flushed as well, so no client depends on
    /// them.
    async fn rulesets_are_flushed(&self) -> Vec<(String, Duration)> {
        let (web, work) = (self.web, ELSEWHERE[0]);
        let (outside, inside) = (format!("{EXTERNAL}:80"), format!("{}:80", web.cluster_ip));
        let node_port = format!("{}:{NODE_PORT}", web.node_address(EDGE));
        let mut traffic = Traffic::start_controls(web).await;
        let ways = [
            (Place::Client, "external IP", &outside),
            (Place::Client, "NodePort", &node_port),
            (Place::Node(work.to_owned()), "ClusterIP", &inside),
            (pod_on(work), "ClusterIP", &inside),
        ];
        for (place, what, target) in ways {
            traffic.add(web, &place, &format!("flushed: {place} to the {what}"), target, CLOSELY).await;
        }
        for node in [EDGE, work] {
            let node = Place::Node(node.to_owned());
            let before = web.lab.exec(&node, &["nft", "list", "table", "inet", "lab"]).await.unwrap().stdout;
            let saved = web.file(&format!("{node}.nft"));
            std::fs::write(&saved, before).unwrap();
            assert!(web.lab.exec(&node, &["nft", "flush", "ruleset"]).await.unwrap().success);
            sleep(AFTERWARDS).await;
            let restore = ["nft", "-f", saved.to_str().unwrap()];
            let restored = web.lab.exec(&node, &restore).await.unwrap();
            assert!(restored.success, "{}", restored.stderr);
        }
        traffic.outages().await
    }

    /// Nobody else can delete an owned table, and a killed agent leaves it in place for the next
    /// one.
    async fn owned_tables_outlive_their_agent(&mut self) {
        let (lab, place) = (&self.web.lab, Place::Node(EDGE.to_owned()));
        let delete = ["nft", "delete", "table", "ip", TABLE];
        assert!(!lab.exec(&place, &delete).await.unwrap().success, "the table is not owned");
        let traffic = self.traffic().await;
        for node in NODES {
            self.agents.kill(node);
            assert!(has_table(lab, node).await, "{node}");
            self.agents.start_and_wait(node).await;
            assert!(!self.agents.log(node).contains("loaded the tables"), "{}", self.agents.log(node));
        }
        assert!(!lab.exec(&place, &delete).await.unwrap().success, "the new agent does not own the table");
        traffic.expect_no_failure().await;
        self.say("owned tables outlived their agents");
    }
}
