//! All facts as one report. Pure.

use std::borrow::Cow;

use isp_paths::Key;
use isp_report::merge::merge;
use isp_report::model::{self, Report, Stage};

use super::facts::Facts;
use super::journey::sentence;
use super::state::State;
use super::ways::{Follower, pod_of_each_node};
use super::{nodes, planned, policies, services};
use crate::error::CommandError;
use crate::outside::unseen;
use crate::text::few;

/// The report on all exposed Services, or on these.
pub(super) fn report(facts: &Facts, asked: &[Key]) -> Result<Report, CommandError> {
    if let Some(missing) = asked.iter().find(|key| !facts.cluster.services.contains_key(*key)) {
        return Err(CommandError::NoService(missing.clone()));
    }
    let mut stages = vec![State::new(Cow::Borrowed(&facts.cluster), facts.now)?];
    let mut labels =
        vec![Stage { label: "Now".to_owned(), basis: "From the objects of the cluster.".to_owned() }];
    if let Some((file, end)) = &facts.planned {
        let after = planned::after(&facts.cluster, &end.cluster);
        stages.push(State::new(Cow::Owned(after), facts.now)?);
        let unready = end.unready.iter().map(|(name, why)| format!("{name} would not become Ready: {why}"));
        let unready: Vec<String> = unready.collect();
        let basis = if unready.is_empty() {
            "Planned: what the operator would do, if every agent starts.".to_owned()
        } else {
            sentence(&unready.join("; "))
        };
        labels.push(Stage { label: format!("With {file}"), basis });
    }
    let (Some(now), Some(last)) = (stages.first(), stages.last()) else { return Ok(Report::default()) };

    let mut gaps: Vec<String> = now.paths.gaps.iter().map(|gap| sentence(gap)).collect();
    gaps.extend(facts.no_events.iter().map(|gap| sentence(gap)));
    let chosen = chosen(facts, asked, &mut gaps);
    let all_nodes = nodes::nodes(now, last);
    let (mut paths, mut shown) = (Vec::new(), Vec::new());
    for key in &chosen {
        let (Some(service), Some(port)) = (services::service(&stages, key), services::port(now, key)) else {
            gaps.push(format!("Service {key} has no ClusterIP: no rules lead to it."));
            continue;
        };
        if port.others > 0 {
            gaps.push(format!(
                "Service {key} has {} more ports. The report follows port {}.",
                port.others, port.number
            ));
        }
        let pods = pod_of_each_node(now, key);
        // Nodes that behave alike for one Service may differ for another.
        paths.extend(merge(&all_nodes, Follower::new(&stages, key, port, &pods).paths()));
        shown.push(service);
    }
    if paths.iter().any(keeps_an_outsider) {
        gaps.push(sentence(&unseen()));
    }
    Ok(Report {
        title: "Source IPs on the way into the cluster".to_owned(),
        time: facts.now.strftime("%Y-%m-%dT%H:%M:%SZ").to_string(),
        origin: facts.origin.clone(),
        stages: labels,
        paths,
        nodes: all_nodes,
        services: shown,
        policies: policies::policies(&stages),
        findings: policies::findings(now),
        timeline: facts.events.clone(),
        gaps,
    })
}

/// Whether the page says that a client outside keeps its address.
fn keeps_an_outsider(path: &model::Path) -> bool {
    let kept = path.journeys.iter().any(|journey| journey.outcome == model::Outcome::Preserved);
    kept && path.from.kind == model::SourceKind::Outside
}

/// The Services of the report.
fn chosen(facts: &Facts, asked: &[Key], gaps: &mut Vec<String>) -> Vec<Key> {
    if !asked.is_empty() {
        return asked.to_vec();
    }
    let exposed = facts.cluster.services.iter().filter(|(_, service)| service.facts.exposed);
    let mut keys: Vec<Key> = exposed.map(|(key, _)| key.clone()).collect();
    if keys.len() > services::MOST {
        let left: Vec<String> = keys.split_off(services::MOST).iter().map(ToString::to_string).collect();
        gaps.push(format!(
            "{} more Services are exposed and not shown: {}. Choose with --service.",
            left.len(),
            few(&left)
        ));
    }
    keys
}
