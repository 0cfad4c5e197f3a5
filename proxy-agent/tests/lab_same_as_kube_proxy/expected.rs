//! The trace's forecast of a connection, in terms of what a client notices.

use std::collections::BTreeSet;
use std::net::IpAddr;
use std::sync::Arc;

use isp_dataplane::compile::compile;
use isp_dataplane::model::{Node, ServiceName, View};
use isp_dataplane::nft::{Family, Name, Protocol};
use isp_dataplane::plane::Plane;
use isp_dataplane::rules;
use isp_dataplane::ruleset::Ruleset;
use isp_dataplane::trace::{Outcome, Packet, Story, trace};

use crate::addresses::{FAMILIES, of_node};
use crate::clients::Client;
use crate::probe::{Attempt, End};
use crate::services::Generated;
use crate::settings::Settings;

/// The rules of both families, as the agent should have them.
pub(crate) struct Rules {
    rulesets: [Ruleset; 2],
}

impl Rules {
    pub(crate) fn new(settings: Settings, services: &[Generated]) -> Self {
        let node = settings.node();
        let named: Vec<(Arc<ServiceName>, &Generated)> =
            services.iter().map(|each| (each.full_name(), each)).collect();
        Self { rulesets: FAMILIES.map(|family| ruleset(family, &node, &named)) }
    }

    fn of(&self, family: Family) -> &Ruleset {
        &self.rulesets[usize::from(family == Family::Ip6)]
    }

    fn trace(&self, client: Client, attempt: Attempt) -> Vec<Story> {
        let family = Family::of(attempt.source);
        let packet = Packet {
            source: attempt.source,
            destination: attempt.destination.ip(),
            protocol: attempt.protocol,
            port: attempt.destination.port(),
            interface: client.interface().map(str::to_owned),
        };
        trace(self.of(family), &of_node(family), &packet).unwrap()
    }

    /// How the connection can end.
    pub(crate) fn outcomes(&self, client: Client, attempt: Attempt) -> BTreeSet<Outcome> {
        self.trace(client, attempt).into_iter().map(|story| story.outcome).collect()
    }

    /// One way of the first packet, and all ends, for people.
    pub(crate) fn explain(&self, client: Client, attempt: Attempt) -> String {
        let table = self.of(Family::of(attempt.source)).table();
        let stories = self.trace(client, attempt);
        let ends = stories.iter().skip(1).map(|story| format!("or {}", story.outcome));
        stories[0].tell(table).into_iter().chain(ends).collect::<Vec<_>>().join("\n      ")
    }
}

fn ruleset(family: Family, node: &Node, services: &[(Arc<ServiceName>, &Generated)]) -> Ruleset {
    let settings = rules::Settings {
        table: Name::constant("ingress-source-preserve"),
        family,
        ahead: 5,
        remembered_clients: 65_536,
    };
    let mut plane = Plane::new(settings, node.clone());
    for (name, generated) in services {
        plane.set(name, compile(&generated.service, node, View::Full, family));
    }
    Ruleset::new(plane.table(), plane.elements()).unwrap()
}

/// Whether a real end is that of a traced outcome.
pub(crate) fn is_outcome(outcome: Outcome, attempt: Attempt, end: End) -> bool {
    let own = of_node(Family::of(attempt.source));
    let is_of_node = |address: IpAddr| address.is_loopback() || own.contains(&address);
    match (outcome, end) {
        (Outcome::Redirected { to, masqueraded: true }, End::Answered { by, seen }) => {
            to == by && is_of_node(seen)
        }
        (Outcome::Redirected { to, masqueraded: false }, End::Answered { by, seen }) => {
            to == by && seen == attempt.source
        }
        // A pod drops what comes from its own address.
        (Outcome::Redirected { to, masqueraded: false }, End::Dropped) => {
            to.address == attempt.source && !is_of_node(to.address)
        }
        // Nothing listens on NodePorts.
        (Outcome::Untouched, End::Refused) => is_of_node(attempt.destination.ip()),
        (Outcome::Untouched, End::Unclaimed) => !is_of_node(attempt.destination.ip()),
        (Outcome::Rejected, End::Refused) | (Outcome::Dropped, End::Dropped) => true,
        // Over SCTP, silence is all that a client notices.
        (Outcome::Rejected | Outcome::Untouched, End::Dropped) => attempt.protocol == Protocol::Sctp,
        _ => false,
    }
}
