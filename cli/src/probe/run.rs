//! The two kinds of runs, from the first pod to the report.

use std::collections::{BTreeMap, BTreeSet};
use std::net::IpAddr;

use isp_paths::{Cluster, Protocol};
use isp_plan::{Key, observe};
use k8s_openapi::api::core::v1::{Node, Service, ServicePort};
use kube::ResourceExt;
use tokio::time::Instant;

use super::answers::Answer;
use super::canary::{self, Treatment};
use super::nodes::Chosen;
use super::pods::{self, Network};
use super::question::{self, How, Question, internal_ips};
use super::report::{Report, TargetKind};
use super::session::{Client, Ended, Session};
use super::subject::Subject;
use super::table::{self, Asked, Cell, Destination, Observed, Source};
use super::{ProbeError, expect, here, own};
use crate::connection::Connection;
use crate::error::CommandError;
use crate::helper::Interrupt;

/// What a run is about.
pub(crate) struct Facts<'a> {
    pub(crate) subject: &'a Subject,
    pub(crate) chosen: &'a Chosen,
    pub(crate) treatment: &'a Treatment,
    /// The labels of the canary.
    pub(crate) labels: BTreeMap<String, String>,
    pub(crate) run: &'a str,
    /// The name of the canary.
    pub(crate) name: &'a str,
}

/// A source with all its answers.
struct Answered {
    from: Source,
    /// The pod of a client in the network of pods.
    pod: Option<Key>,
    questions: Vec<Question>,
    answers: Vec<Answer>,
}

/// Probes a canary.
pub(crate) async fn canary(
    session: &mut Session<'_>,
    connection: &Connection,
    facts: &Facts<'_>,
    from_here: Option<bool>,
    interrupt: &Interrupt,
) -> Result<Report, CommandError> {
    let subject = facts.subject;
    let mut notes = Vec::new();
    let owners = session.start_targets(facts.run, &facts.chosen.targets).await?;
    let selector = pods::selector(facts.run);
    let canary = canary::canary(facts.name, &subject.service, facts.labels.clone(), selector, owners);
    session.start_canary(&canary, facts.chosen.targets.len()).await?;
    if let Treatment::ByOperator { .. } = facts.treatment {
        session.wait_for_operator(facts.name, &subject.service).await?;
    }
    let canary = session.wait_for_address(facts.name).await?;
    if question::external(&canary).is_empty() && !question::external(&subject.service).is_empty() {
        notes.push(
            "the canary got no external address, so traffic to the external addresses is not probed; --target own does it".to_owned(),
        );
    }
    let port = question::port(&canary).ok_or_else(|| ProbeError::NoPort(subject.key.clone()))?;
    let how = if port.protocol.as_deref() == Some("UDP") { How::Udp } else { How::Tcp };
    let ask = |_: usize, _: usize| how.clone();
    let all = ask_all(session, facts, &canary, port, &ask, from_here, interrupt).await?;
    let (answered, clients) = all;
    let cluster = interrupt.or(expect::read(connection, clients, &mut notes)).await?;
    Ok(report(facts, &canary, port, TargetKind::Canary, &answered, &cluster, notes))
}

/// Probes the Service itself.
pub(crate) async fn own(
    session: &mut Session<'_>,
    connection: &Connection,
    facts: &Facts<'_>,
    from_here: Option<bool>,
    interrupt: &Interrupt,
) -> Result<Report, CommandError> {
    let service = &facts.subject.service;
    let mut notes = Vec::new();
    let port = question::port(service).ok_or_else(|| ProbeError::NoPort(facts.subject.key.clone()))?;
    let began = Instant::now();
    let ask = |client: usize, place: usize| own::how(port, &own::path(facts.run, client, place));
    let (mut answered, clients) = ask_all(session, facts, service, port, &ask, from_here, interrupt).await?;
    let seconds = i64::try_from(began.elapsed().as_secs()).unwrap_or(i64::MAX).saturating_add(2);
    let namespace = &facts.subject.key.namespace;
    let logs = interrupt.or(own::logs(connection, namespace, &facts.subject.pods, seconds)).await?;
    for source in &mut answered {
        for (question, answer) in source.questions.iter().zip(&mut source.answers) {
            if let How::Http { path } = &question.how {
                answer.observed = own::observed(&logs, path, answer.observed.clone());
            }
        }
    }
    let is_reached = |answer: &Answer| answer.observed == Observed::Reached;
    if answered.iter().flat_map(|source| &source.answers).any(is_reached) {
        notes.push(
            "the access log of the Service's pods does not show every request in a known format, so some cells tell only that the \
             Service was reached"
                .to_owned(),
        );
    }
    let cluster = interrupt.or(expect::read(connection, clients, &mut notes)).await?;
    Ok(report(facts, service, port, TargetKind::Own, &answered, &cluster, notes))
}

type Pods = Vec<k8s_openapi::api::core::v1::Pod>;

/// Asks all destinations of a Service from everywhere. `how` gets the numbers of source and
/// destination.
async fn ask_all(
    session: &mut Session<'_>,
    facts: &Facts<'_>,
    service: &Service,
    port: &ServicePort,
    how: &dyn Fn(usize, usize) -> How,
    from_here: Option<bool>,
    interrupt: &Interrupt,
) -> Result<(Vec<Answered>, Pods), CommandError> {
    let nodes: Vec<Node> =
        facts.subject.nodes.iter().filter(|node| is_chosen(node, facts)).cloned().collect();
    let destinations = question::destinations(service, port, &nodes);
    let questions = |source: usize| -> Vec<Question> {
        let numbered = destinations.iter().cloned().enumerate();
        numbered.map(|(place, (to, address))| Question { to, address, how: how(source, place) }).collect()
    };
    let networks = facts
        .chosen
        .clients
        .iter()
        .flat_map(|node| [Network::Pod, Network::Host].map(|network| (node, network)));
    let clients: Vec<Client> = networks
        .enumerate()
        .map(|(place, (node, network))| Client {
            node: node.clone(),
            network,
            questions: questions(place + 1),
        })
        .collect();
    let ended = session.ask(&clients).await?;
    let mut answered = Vec::new();
    if from_here != Some(false) {
        // The ClusterIP is not for clients outside.
        let mut questions = questions(0);
        questions.retain(|question| question.to != Destination::ClusterIp);
        let here = async { Ok(here::ask(&questions, from_here == Some(true)).await) };
        if let Some(answers) = interrupt.or(here).await? {
            answered.push(Answered { from: Source::ThisMachine, pod: None, questions, answers });
        }
    }
    let mut found = Vec::new();
    for (client, Ended { pod, answers }) in clients.into_iter().zip(ended) {
        let node = client.node;
        let (from, key) = match client.network {
            Network::Pod => (Source::Pod { node }, Some(observe::key(&pod.metadata))),
            Network::Host => (Source::Host { node }, None),
        };
        answered.push(Answered { from, pod: key, questions: client.questions, answers });
        found.push(pod);
    }
    Ok((answered, found))
}

fn is_chosen(node: &Node, facts: &Facts<'_>) -> bool {
    let name = node.name_any();
    facts.chosen.clients.contains(&name) || facts.chosen.targets.contains(&name)
}

fn report(
    facts: &Facts<'_>,
    service: &Service,
    port: &ServicePort,
    target: TargetKind,
    answered: &[Answered],
    cluster: &Cluster,
    notes: Vec<String>,
) -> Report {
    let subject = facts.subject;
    let targets: BTreeSet<String> = match target {
        TargetKind::Canary => facts.chosen.targets.iter().cloned().collect(),
        TargetKind::Own => subject.endpoint_nodes.clone(),
    };
    let policy = service.spec.as_ref().and_then(|spec| spec.external_traffic_policy.clone());
    let policy = policy.unwrap_or_else(|| "Cluster".to_owned());
    let addresses = subject.nodes.iter().map(|node| (node.name_any(), addresses(node, cluster)));
    let judged =
        table::Facts { nodes: addresses.collect(), targets: targets.clone(), is_local: policy == "Local" };
    let udp = port.protocol.as_deref() == Some("UDP");
    let protocol = if udp { Protocol::Udp } else { Protocol::Tcp };
    let mut cells = Vec::new();
    for Answered { from, pod, questions, answers } in answered {
        for (question, answer) in questions.iter().zip(answers) {
            let source = expect::source(from, answer.own, pod.as_ref());
            let asked = Asked {
                from: from.clone(),
                own: answer.own,
                to: question.to.clone(),
                address: question.address,
                observed: answer.observed.clone(),
                expected: expect::expected(cluster, source, question.address, protocol),
            };
            cells.push(Cell::new(asked, &judged));
        }
    }
    cells.sort_by(|one, other| (&one.to, &one.from).cmp(&(&other.to, &other.from)));
    Report {
        service: subject.key.to_string(),
        target,
        port: format!("{} {}", if udp { "UDP" } else { "TCP" }, port.port),
        target_nodes: targets.into_iter().collect(),
        external_traffic_policy: policy,
        preserved: !cells.iter().any(|cell| cell.wrong),
        as_expected: !cells.iter().any(|cell| cell.unexpected),
        cells,
        notes,
    }
}

/// The addresses of a node, with those that the bridge of its pods usually has.
fn addresses(node: &Node, cluster: &Cluster) -> BTreeSet<IpAddr> {
    let mut all: BTreeSet<IpAddr> = internal_ips(node).into_iter().collect();
    if let Some(known) = cluster.nodes().get(&node.name_any()) {
        all.extend(known.model.addresses.iter().copied());
        all.extend(known.pod_cidrs.iter().filter_map(|range| range.hosts().next()));
    }
    all
}
