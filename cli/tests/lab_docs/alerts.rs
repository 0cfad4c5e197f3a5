//! docs/monitoring/alerts.yaml, as Prometheus' own tool judges it: which course of the metrics
//! raises which alert, and when.

use std::collections::BTreeSet;
use std::fs;
use std::process::Command;

use isp_lab::provision;
use isp_testkit::repository;
use serde_json::{Value, json};

use super::world::say;

/// The rules as a server without Prometheus' operator reads them.
pub(crate) fn rules() -> Value {
    let path = repository::file("docs/monitoring/alerts.yaml");
    let rule: Value = serde_yaml::from_str(&fs::read_to_string(path).unwrap()).unwrap();
    json!({"groups": rule["spec"]["groups"]})
}

/// What is counted, and at which minutes an alert is not raised yet and is raised.
struct Case {
    alert: &'static str,
    /// Beside those of a healthy cluster.
    series: &'static [(&'static str, &'static str)],
    quiet: u32,
    raised: Option<u32>,
}

const HEALTHY: [(&str, &str); 10] = [
    (r#"isp_operator_leader{pod="a"}"#, "1x200"),
    (r#"isp_operator_leader{pod="b"}"#, "0x200"),
    (r#"isp_operator_objects{phase="Ready",pod="a"}"#, "1x200"),
    (r#"isp_operator_nodes{state="Agent",pod="a"}"#, "3x200"),
    (r#"isp_operator_actions_total{action="label-service",outcome="Done",pod="a"}"#, "0+1x200"),
    (r#"isp_webhook_ca_bundle_writes_total{outcome="Done",pod="a"}"#, "1x200"),
    (r#"isp_webhook_certificate_expiry_seconds{certificate="Authority",pod="a"}"#, "864000x200"),
    (r#"isp_agent_requests_total{outcome="Forwarded",instance="one"}"#, "0+60x200"),
    (r#"isp_beside_failures_total{instance="one"}"#, "0x200"),
    (r#"isp_beside_repairs_total{instance="one"}"#, "0x200"),
];

const CASES: [Case; 17] = [
    Case {
        alert: "SourcePreserveServiceUnreachable",
        series: &[
            (r#"isp_operator_services_without_ingress_endpoint{pod="a"}"#, "1x20"),
            (r#"isp_operator_services_without_ingress_endpoint{pod="b"}"#, "1x20"),
            (r#"isp_operator_objects{phase="Degraded",pod="a"}"#, "1x20"),
            (r#"isp_operator_objects{phase="Degraded",pod="b"}"#, "1x20"),
        ],
        quiet: 1,
        raised: Some(3),
    },
    // One that is not preserved yet is reached by everybody.
    Case {
        alert: "SourcePreserveServiceUnreachable",
        series: &[(r#"isp_operator_services_without_ingress_endpoint{pod="a"}"#, "1x20")],
        quiet: 20,
        raised: None,
    },
    Case {
        alert: "SourcePreserveNoLeader",
        series: &[(r#"isp_operator_leader{pod="a"}"#, "1 1 0x20")],
        quiet: 6,
        raised: Some(8),
    },
    // Nobody is there to say it.
    Case {
        alert: "SourcePreserveNoLeader",
        series: &[
            (r#"isp_operator_leader{pod="a"}"#, "1 stale"),
            (r#"isp_operator_leader{pod="b"}"#, "0 stale"),
        ],
        quiet: 4,
        raised: Some(7),
    },
    Case {
        alert: "SourcePreserveNotReady",
        series: &[
            (r#"isp_operator_objects{phase="Conflict",pod="a"}"#, "2x20"),
            (r#"isp_operator_objects{phase="Conflict",pod="b"}"#, "2x20"),
        ],
        quiet: 9,
        raised: Some(11),
    },
    Case {
        alert: "SourcePreserveSlow",
        series: &[(r#"isp_operator_objects{phase="Progressing",pod="a"}"#, "1x100")],
        quiet: 59,
        raised: Some(61),
    },
    Case {
        alert: "SourcePreserveHandoverFailed",
        series: &[(r#"isp_operator_nodes{state="Failed",pod="a"}"#, "1x20")],
        quiet: 0,
        raised: Some(2),
    },
    Case {
        alert: "SourcePreserveWritesRefused",
        series: &[(
            r#"isp_operator_actions_total{action="hand-over-node",outcome="Refused",pod="a"}"#,
            "_ 1+1x20",
        )],
        quiet: 5,
        raised: Some(9),
    },
    // What was refused once and is not any more.
    Case {
        alert: "SourcePreserveWritesRefused",
        series: &[(
            r#"isp_operator_actions_total{action="hand-over-node",outcome="Refused",pod="a"}"#,
            "_ 1 2 2x30",
        )],
        quiet: 30,
        raised: None,
    },
    Case {
        alert: "SourcePreserveCertificateEnds",
        series: &[
            (r#"isp_webhook_certificate_expiry_seconds{certificate="Leaf",pod="a"}"#, "3600x20"),
            (r#"isp_webhook_certificate_expiry_seconds{certificate="Leaf",pod="b"}"#, "864000x20"),
        ],
        quiet: 9,
        raised: Some(11),
    },
    Case {
        alert: "SourcePreserveWebhookUntrusted",
        series: &[(r#"isp_webhook_handshake_failures_total{reason="Refused",pod="a"}"#, "0+6x40")],
        quiet: 9,
        raised: Some(20),
    },
    // A port scanner.
    Case {
        alert: "SourcePreserveWebhookUntrusted",
        series: &[(r#"isp_webhook_handshake_failures_total{reason="TimedOut",pod="a"}"#, "0 0 5 5x60")],
        quiet: 30,
        raised: None,
    },
    Case {
        alert: "SourcePreserveBundleNotWritten",
        series: &[(r#"isp_webhook_ca_bundle_writes_total{outcome="Failed",pod="a"}"#, "0+1x60")],
        quiet: 9,
        raised: Some(12),
    },
    Case {
        alert: "SourcePreserveAgentFails",
        series: &[(r#"isp_agent_requests_total{outcome="Failed",instance="one"}"#, "0+12x40")],
        quiet: 9,
        raised: Some(20),
    },
    Case {
        alert: "SourcePreserveRulesNotWritten",
        series: &[(r#"isp_beside_failures_total{instance="one"}"#, "0+1x40")],
        quiet: 4,
        raised: Some(8),
    },
    Case {
        alert: "SourcePreserveTablesChanged",
        series: &[(r#"isp_beside_repairs_total{instance="one"}"#, "0+1x90")],
        quiet: 4,
        raised: Some(30),
    },
    // A firewall that is reloaded once.
    Case {
        alert: "SourcePreserveTablesChanged",
        series: &[(r#"isp_beside_repairs_total{instance="one"}"#, "0 0 1x90")],
        quiet: 60,
        raised: None,
    },
];

impl Case {
    /// As promtool reads it. Several replicas tell the same, and nobody is to be called twice, nor
    /// by another alert.
    fn test(&self) -> Value {
        let told = HEALTHY.iter().filter(|(name, _)| self.series.iter().all(|(own, _)| own != name));
        let series: Vec<Value> = told
            .chain(self.series)
            .map(|(series, values)| json!({"series": series, "values": values}))
            .collect();
        let at = |minute: u32, raised: Vec<Value>| {
            json!({
                "expr": "count by (alertname) (ALERTS{alertstate=\"firing\"})",
                "eval_time": format!("{minute}m"), "exp_samples": raised,
            })
        };
        let one = json!({"labels": format!("{{alertname={:?}}}", self.alert), "value": 1});
        let raised = self.raised.map(|minute| at(minute, vec![one]));
        let looks: Vec<Value> = [at(self.quiet, vec![])].into_iter().chain(raised).collect();
        json!({"interval": "1m", "input_series": series, "promql_expr_test": looks})
    }
}

#[test]
fn each_alert_is_raised_by_what_it_names_and_by_nothing_else() {
    let rules = rules();
    let written: BTreeSet<&str> = rules["groups"]
        .as_array()
        .unwrap()
        .iter()
        .flat_map(|group| group["rules"].as_array().unwrap())
        .map(|rule| rule["alert"].as_str().unwrap())
        .collect();
    let tried: BTreeSet<&str> =
        CASES.iter().filter(|case| case.raised.is_some()).map(|case| case.alert).collect();
    assert_eq!(tried, written);

    let promtool = provision::prometheus(say).unwrap().promtool;
    let directory = tempfile::tempdir().unwrap();
    fs::write(directory.path().join("rules.yaml"), rules.to_string()).unwrap();
    let tests: Vec<Value> = CASES.iter().map(Case::test).collect();
    let tests = json!({"rule_files": ["rules.yaml"], "evaluation_interval": "1m", "tests": tests});
    let path = directory.path().join("tests.yaml");
    fs::write(&path, tests.to_string()).unwrap();
    let judged = Command::new(promtool).args(["test", "rules"]).arg(&path).output().unwrap();
    let said = String::from_utf8_lossy(&judged.stdout) + String::from_utf8_lossy(&judged.stderr);
    assert!(judged.status.success(), "{said}");
}
