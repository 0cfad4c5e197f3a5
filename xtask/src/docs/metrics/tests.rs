use std::collections::BTreeSet;

use super::{named, registered, undocumented, unknown};

const SOURCE: &str = r#"
struct Metrics {
    actions: Family<ByAction, Counter>,
    duration: Family<ByDirection, Histogram, fn() -> Histogram>,
    leader: Gauge,
}
impl Metrics {
    fn register(&self, registry: &mut Registry) {
        let registry = registry.sub_registry_with_prefix("isp_operator");
        registry.register("actions", "Actions, by kind", self.actions.clone());
        registry.register_with_unit(
            "duration",
            "How long it took",
            Unit::Seconds,
            self.duration.clone(),
        );
        registry.register("leader", "Whether this replica is the leader", self.leader.clone());
    }
}
"#;

fn set(names: &[&str]) -> BTreeSet<String> {
    names.iter().map(|name| (*name).to_owned()).collect()
}

#[test]
fn names_are_what_is_scraped() {
    let names: Vec<_> = registered(SOURCE).into_iter().map(|metric| metric.name).collect();
    assert_eq!(names, ["isp_operator_actions_total", "isp_operator_duration_seconds", "isp_operator_leader"]);
}

#[test]
fn a_source_that_registers_nothing_has_none() {
    assert_eq!(registered("fn main() {}"), []);
}

#[test]
fn names_in_a_text_are_told_from_crates() {
    let text = "rate(isp_operator_actions_total[5m]) by `isp_api::view`, isp_typo, isp_…";
    assert_eq!(named(text, &set(&["isp_api"])), set(&["isp_operator_actions_total", "isp_typo"]));
}

#[test]
fn what_no_source_registers_is_unknown() {
    let metrics = registered(SOURCE);
    let fine = set(&["isp_operator_leader", "isp_operator_duration_seconds_bucket"]);
    assert_eq!(unknown(&fine, &metrics), [""; 0]);
    let wrong = set(&["isp_operator_actions", "isp_operator_leader_sum"]);
    assert_eq!(unknown(&wrong, &metrics), ["isp_operator_actions", "isp_operator_leader_sum"]);
}

#[test]
fn what_nobody_names_is_undocumented() {
    let named = set(&["isp_operator_actions_total", "isp_operator_duration_seconds_sum"]);
    assert_eq!(undocumented(&named, &registered(SOURCE)), ["isp_operator_leader"]);
}
