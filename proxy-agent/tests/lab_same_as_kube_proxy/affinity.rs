//! Session affinity: a client stays with its endpoint, whichever address of the port it uses, until
//! it has been away for longer than the timeout; and the endpoints of many clients are all
//! endpoints.

use std::collections::{BTreeMap, BTreeSet};
use std::thread;
use std::time::{Duration, Instant};

use futures_util::{StreamExt, stream};
use isp_dataplane::model::Target;
use isp_dataplane::nft::Family;
use isp_dataplane::trace::Outcome;

use crate::addresses::FAMILIES;
use crate::cases::{Case, frontends};
use crate::clients::Client;
use crate::compare::Figures;
use crate::expected::{Rules, is_outcome};
use crate::probe::{Attempt, End, connect, run_in};
use crate::proxies::Served;
use crate::services::{Generated, SHORT_AFFINITY};

/// These clients are many; the others have one address.
const CROWDS: [Client; 2] = [Client::Partner, Client::Pod];
const LIMIT: Duration = Duration::from_secs(10);
/// Clients at once.
const AT_ONCE: usize = 64;
/// Shorter than the short timeout; two of them are longer.
const PAUSE: Duration = Duration::from_secs(2);
/// Longer than the short timeout.
const LONG_PAUSE: Duration = Duration::from_secs(4);

/// One port for one client or crowd: its frontends that are answered, those with the same endpoints
/// side by side.
#[derive(Clone, Debug)]
struct Port {
    client: Client,
    timeout: Duration,
    frontends: Vec<(Case, BTreeSet<Target>)>,
}

impl Port {
    /// The endpoints that a crowd reaches at a frontend with these: all of them, unless its clients
    /// have been at other frontends before; a client that is remembered stays with its endpoint.
    fn reached_by_a_crowd(&self, targets: &BTreeSet<Target>) -> BTreeSet<Target> {
        let (_, first) = &self.frontends[0];
        if first.is_subset(targets) { first.clone() } else { targets.clone() }
    }
}

/// A connection of one client of a crowd.
#[derive(Clone, Copy)]
struct Visit {
    attempt: Attempt,
    started: Instant,
    ended: Instant,
    end: End,
}

impl Visit {
    /// The least and the most time that can have passed between the packets of two visits.
    fn gap(&self, last: &Self) -> (Duration, Duration) {
        (self.started.duration_since(last.ended), self.ended.duration_since(last.started))
    }
}

/// Compares session affinity in both worlds.
pub(crate) fn compare(served: &[Served; 2], rules: &Rules, services: &[Generated], figures: &mut Figures) {
    let ports: Vec<Port> = services.iter().flat_map(|each| ports(rules, each)).collect();
    let (reached, wrong): (Vec<_>, Vec<_>) = thread::scope(|scope| {
        let worlds = served.each_ref().map(|served| scope.spawn(|| in_world(served, rules, &ports)));
        worlds.map(|world| world.join().unwrap()).into_iter().unzip()
    });
    figures.differences.extend(wrong.into_iter().flatten());
    for (port, (theirs, ours)) in ports.iter().zip(reached[0].iter().zip(&reached[1])) {
        figures.cases += port.frontends.len();
        figures.connections += 2 * visits(port);
        // A single client reaches one of the endpoints; a crowd reaches all.
        for (case, targets) in port.frontends.iter().filter(|_| CROWDS.contains(&port.client)) {
            let [theirs, ours] = [theirs, ours].map(|reached| reached.get(case).cloned().unwrap_or_default());
            let expected = port.reached_by_a_crowd(targets);
            if theirs != expected || ours != expected {
                figures.differences.push(format!(
                    "a crowd of {case:?} reaches {theirs:?} with kube-proxy, {ours:?} with the agent, expected {expected:?}"
                ));
            }
        }
    }
}

fn visits(port: &Port) -> usize {
    let (case, _) = port.frontends[0];
    sources(case) * (port.frontends.len() + 4)
}

fn sources(case: Case) -> usize {
    if CROWDS.contains(&case.client) {
        case.client.sources(case.family(), case.destination.ip()).len()
    } else {
        1
    }
}

/// The ports with session affinity of a Service, for each client and family.
fn ports(rules: &Rules, generated: &Generated) -> Vec<Port> {
    let Some(seconds) = generated.service.affinity else { return Vec::new() };
    let timeout = Duration::from_secs(seconds.into());
    let mut ports = Vec::new();
    for place in 0..generated.service.ports.len() {
        let protocol = generated.service.ports[place].protocol;
        for (client, family) in Client::ALL.iter().flat_map(|client| FAMILIES.map(|family| (*client, family)))
        {
            let destinations = frontends(generated, place).into_iter();
            let cases = destinations.filter(|each| Family::of(each.ip()) == family).map(|destination| Case {
                client,
                destination,
                protocol,
            });
            let mut frontends: Vec<(Case, BTreeSet<Target>)> =
                cases.filter_map(|case| Some((case, targets(rules, case)?))).collect();
            frontends.sort_by(|(_, one), (_, other)| one.cmp(other));
            if place % 2 == 1 {
                frontends.reverse();
            }
            if !frontends.is_empty() {
                ports.push(Port { client, timeout, frontends });
            }
        }
    }
    ports
}

/// The endpoints of a frontend, if the client gets an answer from each.
fn targets(rules: &Rules, case: Case) -> Option<BTreeSet<Target>> {
    let attempt = case.attempt(0);
    let outcomes = rules.outcomes(case.client, attempt);
    let target = |outcome: &Outcome| match outcome {
        Outcome::Redirected { to, masqueraded } if *masqueraded || to.address != attempt.source => Some(*to),
        _ => None,
    };
    outcomes.iter().map(target).collect()
}

/// Visits all ports in one world. Returns the endpoints that were reached at each frontend of each
/// port, and everything that was wrong.
fn in_world(
    served: &Served,
    rules: &Rules,
    ports: &[Port],
) -> (Vec<BTreeMap<Case, BTreeSet<Target>>>, Vec<String>) {
    let results: Vec<(usize, Vec<Vec<Visit>>)> = thread::scope(|scope| {
        let threads = Client::ALL.map(|client| {
            let entrance = served.world.netns.entrance(client.place()).unwrap();
            let own: Vec<(usize, Port)> =
                ports.iter().cloned().enumerate().filter(|(_, port)| port.client == client).collect();
            scope.spawn(|| run_in(entrance, async move || visit_all(own).await))
        });
        threads.into_iter().flat_map(|thread| thread.join().unwrap()).collect()
    });
    let mut reached = vec![BTreeMap::new(); ports.len()];
    let mut wrong = Vec::new();
    for (place, crowd) in results {
        judge(served.name, rules, &ports[place], &crowd, &mut reached[place], &mut wrong);
    }
    (reached, wrong)
}

/// Visits ports with one client: each of its addresses visits each frontend in turn, then stays
/// away for some time.
async fn visit_all(ports: Vec<(usize, Port)>) -> Vec<(usize, Vec<Vec<Visit>>)> {
    let mut crowds = Vec::new();
    for (place, port) in &ports {
        crowds.extend((0..sources(port.frontends[0].0)).map(|number| (*place, port, number)));
    }
    let visited = crowds.into_iter().map(async |(place, port, number)| {
        let mut visits = Vec::new();
        for (case, _) in &port.frontends {
            visits.push(visit(*case, number).await);
        }
        (place, port, number, visits)
    });
    let mut visited: Vec<_> = stream::iter(visited).buffer_unordered(AT_ONCE).collect().await;
    for pause in [Duration::ZERO, PAUSE, PAUSE, LONG_PAUSE] {
        tokio::time::sleep(pause).await;
        let again = visited.into_iter().map(async |(place, port, number, mut visits)| {
            let (case, _) = port.frontends[port.frontends.len() - 1];
            visits.push(visit(case, number).await);
            (place, port, number, visits)
        });
        visited = stream::iter(again).buffer_unordered(AT_ONCE).collect().await;
    }
    let mut of_ports: BTreeMap<usize, Vec<Vec<Visit>>> = BTreeMap::new();
    for (place, _, _, visits) in visited {
        of_ports.entry(place).or_default().push(visits);
    }
    of_ports.into_iter().collect()
}

/// One connection. One without an answer is tried again: on a busy machine, answers can come late.
async fn visit(case: Case, number: usize) -> Visit {
    let (attempt, started) = (case.attempt(number), Instant::now());
    let mut end = connect(attempt, LIMIT).await;
    if end == End::Dropped {
        end = connect(attempt, LIMIT).await;
    }
    Visit { attempt, started, ended: Instant::now(), end }
}

/// Checks the visits of a crowd.
fn judge(
    proxy: &str,
    rules: &Rules,
    port: &Port,
    crowd: &[Vec<Visit>],
    reached: &mut BTreeMap<Case, BTreeSet<Target>>,
    wrong: &mut Vec<String>,
) {
    let mut moved = 0;
    let mut away = 0;
    for visits in crowd {
        let last = &port.frontends[port.frontends.len() - 1];
        let at = port.frontends.iter().chain([last; 4]).zip(visits);
        let mut before: Option<(&BTreeSet<Target>, Target, &Visit)> = None;
        // Whether the client has never been away for too long, however busy the machine.
        let mut is_remembered = true;
        for ((case, targets), visit) in at {
            let End::Answered { by, .. } = visit.end else {
                wrong.push(format!("{proxy}: {case:?} from {}: {}", visit.attempt.source, visit.end));
                continue;
            };
            let outcomes = rules.outcomes(port.client, visit.attempt);
            if !outcomes.iter().any(|outcome| is_outcome(*outcome, visit.attempt, visit.end)) {
                wrong.push(format!("{proxy}: {case:?}: {}, expected {outcomes:?}", visit.end));
            }
            // The node itself has several addresses.
            let same = before.filter(|(last_targets, _, last)| {
                *last_targets == targets && last.attempt.source == visit.attempt.source
            });
            let (shortest, longest) = before.map_or_else(Default::default, |(_, _, last)| visit.gap(last));
            is_remembered &= longest < port.timeout.mul_f32(0.9);
            if shortest > port.timeout {
                away += usize::from(same.is_some() && targets.len() > 1);
                moved += usize::from(same.is_some_and(|(_, endpoint, _)| endpoint != by));
            } else if is_remembered {
                reached.entry(*case).or_default().insert(by);
                if let Some((_, endpoint, _)) = same.filter(|(_, endpoint, _)| *endpoint != by) {
                    wrong.push(format!(
                        "{proxy}: {case:?} from {} moved from {endpoint} to {by} after {longest:?}",
                        visit.attempt.source
                    ));
                }
            }
            before = Some((targets, by, visit));
        }
    }
    // If a crowd that was forgotten chooses anew, hardly all choose the same endpoint again.
    if port.timeout.as_secs() == u64::from(SHORT_AFFINITY) && away >= 20 && moved == 0 {
        wrong.push(format!("{proxy}: {:?}: none of {away} clients was forgotten", port.frontends));
    }
}
