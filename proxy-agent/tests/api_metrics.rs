//! The agent's metrics on the network, and the alert about agents: the counters of a real agent
//! raise it in a real Prometheus.

#![allow(clippy::unwrap_used, clippy::panic, reason = "helpers of tests fail as tests do")]

use std::fs;
use std::process::Command;
use std::time::Duration;

use isp_lab::{ControlPlane, free_address, provision};
use isp_testkit::agent::{Agent, AgentToken};
use isp_testkit::{Process, repository, until};
use serde_json::{Value, json};

const ALERT: &str = "SourcePreserveAgentFails";

fn get(url: &str) -> (u16, String) {
    let output = Command::new("curl").args(["-sS", "-w", "\n%{http_code}", url]).output().unwrap();
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    let (body, code) = text.rsplit_once('\n').unwrap_or_default();
    (code.parse().unwrap_or(0), body.to_owned())
}

/// Returns the state of the alert in a Prometheus.
fn state(address: &str) -> Option<String> {
    let (_, body) = get(&format!("http://{address}/api/v1/rules"));
    let answer: Value = serde_json::from_str(&body).ok()?;
    let rules = answer["data"]["groups"][0]["rules"].as_array()?.clone();
    let rule = rules.iter().find(|rule| rule["name"] == ALERT)?;
    assert_ne!(rule["health"], "err", "{rule}");
    rule["state"].as_str().map(str::to_owned)
}

#[tokio::test]
async fn the_alert_about_agents_is_raised_by_what_a_failing_agent_counts() {
    let cluster = ControlPlane::shared().await.unwrap();
    let metrics = free_address().unwrap();
    let port = metrics.port().to_string();
    // With kube-proxy's token the agent cannot know the view, so requests for Services fail.
    let more = ["--metrics-host", "127.0.0.1", "--metrics-port", &port];
    let agent = Agent::of(env!("CARGO_BIN_EXE_proxy-agent")).token(AgentToken::KubeProxy).arguments(&more);
    let agent = agent.start(cluster).await;
    until("metrics are served", async || get(&format!("http://{metrics}/metrics")).0 == 200).await;
    for path in ["/healthz", "/readyz", "/"] {
        assert_eq!(get(&format!("http://{metrics}{path}")).0, 404, "{path} is for the node alone");
    }

    let path = repository::file("docs/monitoring/alerts.yaml");
    let alerts: Value = serde_yaml::from_str(&fs::read_to_string(path).unwrap()).unwrap();
    let directory = tempfile::tempdir().unwrap();
    let file = |name: &str| directory.path().join(name);
    let settings = json!({
        "global": {"scrape_interval": "1s", "evaluation_interval": "1s"},
        "rule_files": ["rules.yaml"],
        "scrape_configs": [{"job_name": "agents", "static_configs": [{"targets": [metrics.to_string()]}]}],
    });
    fs::write(file("settings.yaml"), settings.to_string()).unwrap();
    fs::write(file("rules.yaml"), json!({"groups": alerts["spec"]["groups"]}).to_string()).unwrap();
    let server = tokio::task::spawn_blocking(|| provision::prometheus(|line| println!("{line}")));
    let server = server.await.unwrap().unwrap().server;
    let address = free_address().unwrap().to_string();
    let mut command = Command::new(server);
    command
        .arg(format!("--config.file={}", file("settings.yaml").display()))
        .arg(format!("--storage.tsdb.path={}", file("data").display()))
        .arg(format!("--web.listen-address={address}"));
    let _prometheus = Process::start(command, &file("prometheus.log"));
    until("the rule is known", async || state(&address).as_deref() == Some("inactive")).await;
    let counted = async || {
        let url = format!("http://{address}/api/v1/query?query=isp_agent_requests_total");
        get(&url).1.contains(r#""outcome":"Failed""#)
    };
    until("the agent is scraped", counted).await;
    assert_eq!(agent.ask(&["/api/v1/services"]).0, 503);
    tokio::time::sleep(Duration::from_secs(3)).await;
    assert_eq!(state(&address).as_deref(), Some("inactive"), "one failure is none");
    for _ in 0..100 {
        assert_eq!(agent.ask(&["/api/v1/services"]).0, 503);
    }
    until("the alert begins", async || state(&address).as_deref() == Some("pending")).await;
}
