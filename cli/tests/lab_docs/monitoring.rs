//! docs/operations.md on monitoring: a real Prometheus on a node, which finds the programs as the
//! `PodMonitor` says, with the alerts and the questions of the dashboard.

use std::collections::BTreeSet;
use std::fs;
use std::time::Instant;

use isp_lab::istio::{GATEWAY, NAMESPACE};
use isp_lab::{Lab, Place, provision};
use isp_testkit::{Look, Process, repository};
use serde_json::{Value, json};
use tempfile::TempDir;

use super::alerts;
use super::world::{World, say};

/// Where it runs. It reaches everything over the network.
const NODE: &str = "work-1";
const ADDRESS: &str = "127.0.0.1:9090";
/// Two replicas each of operator and webhook, and the agents of two nodes.
const PROGRAMS: usize = 6;

/// What the dashboard asks, for which a cluster without trouble has no answer.
const ONLY_IN_TROUBLE: [&str; 1] = ["isp_webhook_handshake_failures_total"];

/// A server that runs. It ends with its handle, and with the lab.
pub(crate) struct Prometheus {
    process: Process,
    _directory: TempDir,
}

impl Drop for Prometheus {
    fn drop(&mut self) {
        if std::thread::panicking() {
            eprintln!("Prometheus' log:\n{}", self.process.complained());
        }
    }
}

impl Prometheus {
    /// Scrapes what the `PodMonitor` of the manifests selects.
    pub(crate) async fn start(world: &World) -> Self {
        let monitor = fs::read_to_string(repository::file("manifests/monitoring/pod-monitor.yaml")).unwrap();
        let monitor: Value = serde_yaml::from_str(&monitor).unwrap();
        let pods = selected(&world.lab, &monitor).await;
        assert_eq!(pods.len(), PROGRAMS, "{pods:?}");
        let job = json!({"job_name": monitor["metadata"]["name"], "static_configs": [{"targets": pods}]});
        let settings = json!({
            "global": {"scrape_interval": "1s", "evaluation_interval": "1s"},
            "rule_files": ["rules.yaml"],
            "scrape_configs": [job],
        });
        let directory = tempfile::tempdir().unwrap();
        let file = |name: &str| directory.path().join(name);
        fs::write(file("rules.yaml"), alerts::rules().to_string()).unwrap();
        fs::write(file("settings.yaml"), settings.to_string()).unwrap();
        let server =
            tokio::task::spawn_blocking(|| provision::prometheus(say)).await.unwrap().unwrap().server;
        let arguments = [
            server.display().to_string(),
            format!("--config.file={}", file("settings.yaml").display()),
            format!("--storage.tsdb.path={}", file("data").display()),
            format!("--web.listen-address={ADDRESS}"),
        ];
        let place = Place::Node(NODE.to_owned());
        let command = world.lab.command_in(&place, &arguments).await.unwrap();
        let process = Process::start_in_place(command, &file("log"));
        Self { process, _directory: directory }
    }

    /// Everything is found, no alert is raised, and the dashboard shows something everywhere.
    pub(crate) async fn sees_a_healthy_cluster(&self, world: &World) {
        until("everything is scraped", async || {
            // Before its first look it knows of nothing.
            let up = query(&world.lab, "sum(up)").await.unwrap_or_default();
            let all = up.first().and_then(|up| up["value"][1].as_str()) == Some(&PROGRAMS.to_string());
            if all { Ok(()) } else { Err(up) }
        })
        .await;
        // A rate takes two looks.
        until("rates are there", async || {
            let rate = "sum(rate(isp_agent_requests_total[5m]))";
            query(&world.lab, rate).await.is_some_and(|found| !found.is_empty())
        })
        .await;
        until("the rules have been looked at", async || {
            let rules = rules(&world.lab).await;
            let all = !rules.is_empty() && rules.iter().all(|rule| rule["health"] == "ok");
            if all { Ok(()) } else { Err(rules) }
        })
        .await;
        // Before the first scrape of a program its alerts may be pending, but none fires.
        until("no alert is pending", async || {
            let raised = raised(&world.lab).await;
            assert!(raised.iter().all(|rule| rule["state"] == "pending"), "{raised:?}");
            if raised.is_empty() { Ok(()) } else { Err(raised) }
        })
        .await;
        // Programs are scraped one after the other, and a rate of each takes two scrapes.
        until("each panel has an answer", async || {
            let empty = unanswered(&world.lab).await;
            if empty.is_empty() { Ok(()) } else { Err(empty) }
        })
        .await;
    }

    /// The gateway goes, and comes back; whoever watches is told of both.
    pub(crate) async fn tells_of_trouble(self, world: &World) {
        const ALERT: &str = "SourcePreserveServiceUnreachable";
        let gateway = format!("deployment/{GATEWAY}");
        let scale = async |replicas: &str| {
            world.lab.kubectl(["-n", NAMESPACE, "scale", &gateway, replicas]).await.unwrap();
        };
        scale("--replicas=0").await;
        self.expect(world, ALERT, true).await;
        scale("--replicas=1").await;
        let ready = ["wait", "--for=condition=Ready", "isp/istio", "--timeout=120s"];
        world.lab.kubectl(ready).await.unwrap();
        self.expect(world, ALERT, false).await;
    }

    /// An alert has begun, or is over.
    async fn expect(&self, world: &World, alert: &str, begun: bool) {
        until(&format!("{alert} {}", if begun { "begins" } else { "ends" }), async || {
            let rules = rules(&world.lab).await;
            let rule = rules.iter().find(|rule| rule["name"] == alert);
            let so = rule.is_some_and(|rule| (rule["state"] != "inactive") == begun);
            if so { Ok(()) } else { Err(rule.cloned()) }
        })
        .await;
    }
}

/// Where the pods of a `PodMonitor` are scraped.
async fn selected(lab: &Lab, monitor: &Value) -> Vec<String> {
    let list = |value: &Value| -> Vec<String> { serde_json::from_value(value.clone()).unwrap() };
    let spec = &monitor["spec"];
    let [expression] = spec["selector"]["matchExpressions"].as_array().unwrap().as_slice() else {
        panic!("{spec}")
    };
    assert_eq!(expression["operator"], "In");
    let names = list(&expression["values"]).join(",");
    let labels = format!("{} in ({names})", expression["key"].as_str().unwrap());
    let mut pods = Vec::new();
    for namespace in list(&spec["namespaceSelector"]["matchNames"]) {
        let get = ["get", "pods", "-n", &namespace, "-l", &labels, "-o", "json"];
        let found: Value = serde_json::from_str(&lab.kubectl(get).await.unwrap().stdout).unwrap();
        pods.extend(found["items"].as_array().unwrap().iter().cloned());
    }
    let endpoints = spec["podMetricsEndpoints"].as_array().unwrap();
    pods.retain(|pod| pod["status"]["phase"] == "Running" && pod["metadata"]["deletionTimestamp"].is_null());
    pods.iter()
        .flat_map(|pod| {
            // As Prometheus finds them: a sidecar is among those that start first.
            let kinds = ["containers", "initContainers"].into_iter();
            let containers = kinds.filter_map(|kind| pod["spec"][kind].as_array()).flatten();
            let ports = containers.filter_map(|container| container["ports"].as_array()).flatten();
            let scraped =
                ports.filter(|port| endpoints.iter().any(|endpoint| endpoint["port"] == port["name"]));
            scraped
                .map(|port| format!("{}:{}", pod["status"]["podIP"].as_str().unwrap(), port["containerPort"]))
        })
        .collect()
}

/// All that the dashboard asks.
fn questions() -> Vec<String> {
    let path = repository::file("docs/monitoring/dashboard.json");
    let dashboard: Value = serde_json::from_str(&fs::read_to_string(path).unwrap()).unwrap();
    let panels = dashboard["panels"].as_array().unwrap().iter();
    let targets = panels.filter_map(|panel| panel["targets"].as_array()).flatten();
    let questions: Vec<String> = targets.map(|target| target["expr"].as_str().unwrap().to_owned()).collect();
    assert!(questions.len() > 20, "{questions:?}");
    questions
}

/// The rules with an alert that is pending or fires.
async fn raised(lab: &Lab) -> Vec<Value> {
    rules(lab).await.into_iter().filter(|rule| rule["state"] != "inactive").collect()
}

/// The questions of the dashboard's panels that have no answer yet, though there is no trouble.
async fn unanswered(lab: &Lab) -> BTreeSet<String> {
    let mut empty = BTreeSet::new();
    for asked in questions() {
        let Some(found) = query(lab, &asked).await else { panic!("{asked} is not understood") };
        let only_in_trouble = ONLY_IN_TROUBLE.iter().any(|metric| asked.contains(metric));
        if found.is_empty() && !only_in_trouble {
            empty.insert(asked);
        }
    }
    empty
}

/// The answer, unless Prometheus does not understand the question.
async fn query(lab: &Lab, asked: &str) -> Option<Vec<Value>> {
    let answer = get(lab, "query", Some(asked)).await?;
    answer["result"].as_array().cloned()
}

async fn rules(lab: &Lab) -> Vec<Value> {
    let answer = get(lab, "rules", None).await.unwrap_or_default();
    let groups = answer["groups"].as_array().cloned().unwrap_or_default();
    groups.iter().filter_map(|group| group["rules"].as_array()).flatten().cloned().collect()
}

async fn get(lab: &Lab, what: &str, query: Option<&str>) -> Option<Value> {
    let url = format!("http://{ADDRESS}/api/v1/{what}");
    let query = query.map(|query| format!("query={query}"));
    let query: Vec<&str> = query.iter().flat_map(|query| ["--data-urlencode", query]).collect();
    let arguments: Vec<&str> = ["--get", &url].into_iter().chain(query).collect();
    let answer = lab.curl(&Place::Node(NODE.to_owned()), &arguments).await.unwrap();
    let answer: Value = serde_json::from_str(&answer.stdout).ok()?;
    (answer["status"] == "success").then(|| answer["data"].clone())
}

async fn until<L: Look>(what: &str, look: impl AsyncFnMut() -> L) {
    let began = Instant::now();
    isp_testkit::until(what, look).await;
    println!("{:.1} s until {what}", began.elapsed().as_secs_f64());
}
