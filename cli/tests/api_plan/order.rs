//! Whether the operator kept the order of a plan: no action of a later step came before one of an
//! earlier step.
//!
//! With one object and one pool this holds without exception. Several go on by themselves, each as
//! fast as the cluster lets it. Then there is an order still
//! - of all that is done for one object alone, from its finalizer to its Services;
//! - between what prepares a pool, the nodes of that pool, and the Services of the objects that
//!   need those nodes.
//!
//! There is none between two pools, between the Services of two objects, between nodes that not the
//! same objects need, and between the finalizer of one object and what another one needs as well.

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use crate::planned::{PlanOutput, Step, pool};
use crate::sample::Sample;

/// Steps that came before one of an earlier moment.
pub(crate) fn out_of_order(sample: &Sample, plan: &PlanOutput, done: &[Step]) -> Vec<String> {
    let mut moments: BTreeMap<&Step, VecDeque<usize>> = BTreeMap::new();
    for (number, moment) in plan.moments.iter().enumerate() {
        for (step, _) in moment {
            moments.entry(step).or_default().push_back(number + 1);
        }
    }
    let mut when = |step| moments.get_mut(step).and_then(VecDeque::pop_front).unwrap();
    let done: Vec<(usize, Strand<'_>)> =
        done.iter().map(|step| (when(step), Strand::of(step, sample, plan))).collect();
    let mut wrong = Vec::new();
    for (place, (moment, first)) in done.iter().enumerate() {
        for (earlier, second) in &done[place + 1..] {
            if moment > earlier && first.has_order_with(second) {
                let (first, second) = (first.step, second.step);
                wrong
                    .push(format!("{first:?} of moment {moment} came before {second:?} of moment {earlier}"));
            }
        }
    }
    // Whatever is done for several objects needs one that is held.
    if let Some((_, first)) = done.first().filter(|(_, first)| first.kind != Kind::Hold) {
        wrong.push(format!("{:?} came before any object was held", first.step));
    }
    wrong
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Kind {
    Hold,
    Prepare,
    Images,
    Node,
    Service,
}

/// A step, and what it is done for.
struct Strand<'a> {
    step: &'a Step,
    kind: Kind,
    objects: BTreeSet<&'a str>,
    /// None: for all pools.
    pool: Option<&'a str>,
}

impl<'a> Strand<'a> {
    fn of(step: &'a Step, sample: &'a Sample, plan: &'a PlanOutput) -> Self {
        let name = step.object.as_str();
        let (kind, objects, pool) = match step.action.as_str() {
            "hold-object" => (Kind::Hold, BTreeSet::from([name]), None),
            "label-service" | "take-over-service" | "localise-service" => {
                (Kind::Service, sample.asking_for(name), None)
            }
            "pull-images" | "hand-over-node" | "handed-over-node" => {
                (Kind::Node, sample.elsewhere_for(name), Some(pool_of(name, plan)))
            }
            "apply-pool" => (Kind::Prepare, sample.names(), name.strip_prefix("kube-system/proxy-agent-")),
            // They go when the last node of their pool has gone over, while Services may be changed
            // already.
            "apply-images" | "delete-images" => {
                (Kind::Images, sample.names(), name.strip_prefix("kube-system/proxy-agent-images-"))
            }
            _ => (Kind::Prepare, sample.names(), None),
        };
        Self { step, kind, objects, pool }
    }

    /// See the module.
    fn has_order_with(&self, other: &Self) -> bool {
        if self.pool.zip(other.pool).is_some_and(|(one, other)| one != other) {
            return false;
        }
        match (self.kind, other.kind) {
            (Kind::Images, Kind::Service) | (Kind::Service, Kind::Images) => false,
            _ if self.objects == other.objects => true,
            (Kind::Hold, _) | (_, Kind::Hold) => false,
            (Kind::Prepare | Kind::Images, _) | (_, Kind::Prepare | Kind::Images) => true,
            (Kind::Service, Kind::Node) => self.objects.is_subset(&other.objects),
            (Kind::Node, Kind::Service) => other.objects.is_subset(&self.objects),
            _ => false,
        }
    }
}

/// The pool that a node goes over to.
fn pool_of<'a>(node: &str, plan: &'a PlanOutput) -> &'a str {
    let goes_over = |(step, _): &&(Step, String)| step.action == "hand-over-node" && step.object == node;
    plan.steps().find(goes_over).map(|(_, description)| pool(description)).unwrap()
}
