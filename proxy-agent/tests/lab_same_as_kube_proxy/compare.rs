//! The same connections in both worlds: do they end alike, and as the trace says?
//!
//! An endpoint is chosen at random, so a case is tried several times, and the ends are a set. A
//! case whose sets differ is tried again, more often and more patiently, before it counts as a
//! difference: the ends that were seen add up, but "dropped" counts only if it is seen again,
//! because on a busy machine an answer can come late. That a connection is really dropped is not
//! concluded from silence alone: the trace must say so as well, while other connections of the same
//! run are answered.

use std::collections::{BTreeMap, BTreeSet};
use std::thread;
use std::time::Duration;

use isp_dataplane::trace::Outcome;

use crate::cases::Case;
use crate::clients::Client;
use crate::expected::{Rules, is_outcome};
use crate::probe::{Attempt, End, list, try_all};
use crate::proxies::Served;

/// Over IPv6, local clients notice a rejection only when they send again, after a second.
const LIMIT: Duration = Duration::from_millis(2500);
const PATIENT_LIMIT: Duration = Duration::from_secs(10);
/// How often a case that differs is tried again.
const AGAIN: usize = 3;

/// What became of cases.
#[derive(Debug, Default)]
pub(crate) struct Figures {
    pub(crate) services: usize,
    pub(crate) cases: usize,
    pub(crate) connections: usize,
    pub(crate) tried_again: usize,
    /// How many cases had such an outcome.
    pub(crate) outcomes: BTreeMap<&'static str, usize>,
    pub(crate) differences: Vec<String>,
}

/// The ends of one case in each world.
type Seen = [BTreeSet<End>; 2];

/// Tries cases in both worlds and compares.
pub(crate) fn compare(served: &[Served; 2], rules: &Rules, cases: &[Case], figures: &mut Figures) {
    figures.cases += cases.len();
    let mut seen: BTreeMap<Case, Seen> = cases.iter().map(|case| (*case, Seen::default())).collect();
    let expected: BTreeMap<Case, BTreeSet<Outcome>> =
        cases.iter().map(|case| (*case, rules.outcomes(case.client, case.attempt(0)))).collect();
    for outcomes in expected.values() {
        for kind in outcomes.iter().map(kind).collect::<BTreeSet<_>>() {
            *figures.outcomes.entry(kind).or_default() += 1;
        }
    }
    let mut open = cases.to_vec();
    for round in 0..=AGAIN {
        let (often, limit) = if round == 0 { (6, LIMIT) } else { (30, PATIENT_LIMIT) };
        // Silence has to be confirmed.
        for case in &open {
            for ends in seen.get_mut(case).unwrap() {
                ends.remove(&End::Dropped);
            }
        }
        let attempts = attempts(&open, &expected, often);
        figures.connections += 2 * attempts.len();
        let both = thread::scope(|scope| {
            let worlds = served.each_ref().map(|served| scope.spawn(|| in_world(served, &attempts, limit)));
            worlds.map(|world| world.join().unwrap())
        });
        for (world, ends) in both.into_iter().enumerate() {
            for ((case, _), end) in attempts.iter().zip(ends) {
                seen.get_mut(case).unwrap()[world].insert(end);
            }
        }
        open.retain(|case| {
            let [theirs, ours] = &seen[case];
            theirs != ours || !is_expected(*case, &expected[case], ours)
        });
        if open.is_empty() {
            return;
        }
        if round < AGAIN {
            figures.tried_again += open.len();
        }
    }
    for case in open {
        let [theirs, ours] = &seen[&case];
        figures.differences.push(format!(
            "{:?} to {} over {:?}:\n    kube-proxy: {}\n    agent:      {}\n    trace:\n      {}",
            case.client,
            case.destination,
            case.protocol,
            list(theirs),
            list(ours),
            rules.explain(case.client, case.attempt(0)),
        ));
    }
}

/// Every end is one that the trace knows, and every traced outcome was seen.
fn is_expected(case: Case, outcomes: &BTreeSet<Outcome>, ends: &BTreeSet<End>) -> bool {
    let attempt = case.attempt(0);
    ends.iter().all(|end| outcomes.iter().any(|outcome| is_outcome(*outcome, attempt, *end)))
        && outcomes.iter().all(|outcome| ends.iter().any(|end| is_outcome(*outcome, attempt, *end)))
}

/// So many attempts of each case as its endpoints need, each case with one of its client's
/// addresses.
fn attempts(
    cases: &[Case],
    expected: &BTreeMap<Case, BTreeSet<Outcome>>,
    often: usize,
) -> Vec<(Case, Attempt)> {
    let times = |case: &Case| match expected[case].len() {
        1 if !matches!(expected[case].first(), Some(Outcome::Redirected { .. })) => 2,
        endpoints => often * endpoints + 2,
    };
    cases.iter().flat_map(|case| (0..times(case)).map(|_| (*case, case.attempt(0)))).collect()
}

/// Tries the attempts, those of each client on a thread of their own.
fn in_world(served: &Served, attempts: &[(Case, Attempt)], limit: Duration) -> Vec<End> {
    let mut ends: Vec<Option<End>> = vec![None; attempts.len()];
    let of_clients: Vec<(Vec<usize>, Vec<End>)> = thread::scope(|scope| {
        let threads: Vec<_> = Client::ALL
            .map(|client| {
                scope.spawn(move || {
                    let places: Vec<usize> =
                        (0..attempts.len()).filter(|place| attempts[*place].0.client == client).collect();
                    let own = places.iter().map(|place| attempts[*place].1).collect();
                    let ends = try_all(&served.world.netns, client, own, limit);
                    (places, ends)
                })
            })
            .into();
        threads.into_iter().map(|thread| thread.join().unwrap()).collect()
    });
    for (place, end) in of_clients.into_iter().flat_map(|(places, ends)| places.into_iter().zip(ends)) {
        ends[place] = Some(end);
    }
    ends.into_iter().map(Option::unwrap).collect()
}

fn kind(outcome: &Outcome) -> &'static str {
    match outcome {
        Outcome::Untouched => "untouched",
        Outcome::Redirected { masqueraded: false, .. } => "source kept",
        Outcome::Redirected { masqueraded: true, .. } => "masqueraded",
        Outcome::Rejected => "rejected",
        Outcome::Dropped => "dropped",
    }
}
