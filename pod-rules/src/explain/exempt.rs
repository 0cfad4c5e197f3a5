//! Who is exempt from the redirect of outbound connections.

use std::net::IpAddr;

use serde::Serialize;

use super::constants;
use super::traffic::{Target, Traffic, target};
use crate::decode::PodRules;
use crate::packet::{Packet, Protocol, Sender};
use crate::rules::Field;

/// Processes whose connections leave the pod past the proxy.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct Exempt {
    /// Users.
    pub uids: Vec<u32>,
    /// Groups.
    pub gids: Vec<u32>,
    /// Marks of their sockets.
    pub marks: Vec<u32>,
    /// Control groups that rules name. Which process is in one is not known here.
    pub control_groups: Vec<String>,
}

impl Exempt {
    pub(super) fn of(rules: &PodRules, own: IpAddr, outbound: &Traffic) -> Self {
        let Some(port) = outbound.redirected_port() else { return Self::default() };
        let ordinary = constants::ordinary(rules, own);
        let is_exempt = |sender: Sender| {
            let destination = Some(constants::server(own));
            let sender = Some(sender);
            let packet = Packet { protocol: Protocol::Tcp, source: None, destination, port, sender };
            target(rules, own, &packet) == Target::Direct
        };
        let numbers = |field, sender: fn(Sender, u32) -> Sender| {
            let mut found = constants::numbers(rules, own, field);
            found.retain(|number| is_exempt(sender(ordinary, *number)));
            found
        };
        let groups = [(Field::Cgroup, "control group"), (Field::NetCls, "net_cls class")];
        let control_groups = groups.into_iter().flat_map(|(field, name)| {
            let found = constants::of(rules, own, field).into_iter();
            found.map(move |(_, first, _)| format!("{name} {first:#x}"))
        });
        Self {
            uids: numbers(Field::User, |ordinary, uid| Sender { uid, ..ordinary }),
            gids: numbers(Field::Group, |ordinary, gid| Sender { gid, ..ordinary }),
            marks: numbers(Field::Mark, |ordinary, mark| Sender { mark, ..ordinary }),
            control_groups: control_groups.collect(),
        }
    }

    /// Whether nobody is.
    pub fn is_empty(&self) -> bool {
        let Self { uids, gids, marks, control_groups } = self;
        uids.is_empty() && gids.is_empty() && marks.is_empty() && control_groups.is_empty()
    }
}
