//! Settings as the rules of one family.
//!
//! | chain | packets |
//! |---|---|
//! | `inbound` | connections to the pod, to the proxy |
//! | `answers` | what the application answers to a proxy that connected with the client's address |
//! | `outbound` | connections of the pod, to the proxy |
//!
//! A chain lists what it leaves alone first; whatever reaches its last rules is redirected.
//!
//! Only packets that leave are marked, never packets that arrive: a packet keeps its route on the
//! loopback interface, so neither `rp_filter` nor `src_valid_mark` looks at its source with the
//! mark.

use std::net::IpAddr;

use ipnet::IpNet;

use super::{Exempt, Inbound, Mark, Method, Outbound, PortRange, Ports, Settings, ports::merged};
use crate::nft::{
    Base, Chain, ChainKind, Data, DataType, Element, Family, Field, Hook, InterfacePattern, Lookup, Marked,
    Match, Name, Owner, Protocol, Rule, Set, Statement, Table, Value, Verdict,
};

/// The name of the table, in both families.
pub const TABLE: Name = Name::constant("pod-redirect");

const INBOUND_PORTS: Name = Name::constant("inbound-ports");
const INBOUND_EXCEPT_PORTS: Name = Name::constant("inbound-except-ports");
const OUTBOUND_PORTS: Name = Name::constant("outbound-ports");
const OUTBOUND_EXCEPT_PORTS: Name = Name::constant("outbound-except-ports");
const OUTBOUND_DESTINATIONS: Name = Name::constant("outbound-destinations");
const OUTBOUND_EXCEPT_DESTINATIONS: Name = Name::constant("outbound-except-destinations");

/// Before destination NAT.
const MANGLE: i32 = -150;
/// Destination NAT.
const DSTNAT: i32 = -100;

/// A table and its elements.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Rules {
    /// The table.
    pub table: Table,
    /// The elements of its sets.
    pub elements: Vec<Element>,
}

impl Settings {
    /// The rules of a family. `cgroup_id` finds the number by which the kernel knows a control
    /// group of [`Exempt::cgroups`].
    pub fn rules<E>(&self, family: Family, cgroup_id: impl Fn(&str) -> Result<u64, E>) -> Result<Rules, E> {
        let table = Table { family, name: TABLE, sets: Vec::new(), chains: Vec::new() };
        let mut rules = Rules { table, elements: Vec::new() };
        if let Some(inbound) = &self.inbound {
            rules.inbound(inbound);
            rules.answers(self.routing.mark);
        }
        if let Some(outbound) = self.outbound.as_ref().filter(|outbound| outbound.concerns(family)) {
            let owners = owners(&self.exempt, cgroup_id)?;
            rules.outbound(outbound, &self.exempt.marks, owners);
        }
        Ok(rules)
    }
}

impl Outbound {
    /// Whether a destination of this family can be redirected.
    fn concerns(&self, family: Family) -> bool {
        let is_of = |range: &IpNet| Family::of(range.addr()) == family;
        self.destinations.is_empty() || self.destinations.iter().any(is_of)
    }
}

impl Rules {
    fn inbound(&mut self, inbound: &Inbound) {
        let Inbound { method, port, ports, except_ports } = inbound;
        let loopback = InterfacePattern::Name("lo".to_owned());
        let mut rules = vec![
            accept(Match::Interface { pattern: loopback, negated: false }, "connections within the pod"),
            accept(Match::OtherProtocol(Protocol::Tcp), "TCP only"),
        ];
        if *method == Method::Tproxy {
            // A chain of type nat does not see answers.
            rules.push(accept(Match::Reply, "answers to connections of the pod"));
        }
        rules.push(accept(Match::DestinationIsForeign, "not for the pod"));
        rules.push(accept(Match::Port(*port), "the proxy itself"));
        rules.extend(self.except(Field::Dport, INBOUND_EXCEPT_PORTS, port_ranges(except_ports)));
        rules.extend(self.only_ports(INBOUND_PORTS, ports));
        let (kind, priority) = match method {
            Method::Tproxy => {
                rules.push(tcp([Statement::Tproxy(*port), Statement::Verdict(Verdict::Accept)]));
                let closed =
                    Rule { comment: Some("the proxy does not listen transparently"), ..tcp([drop()]) };
                rules.push(closed);
                (ChainKind::Filter, MANGLE)
            }
            Method::Redirect => {
                rules.push(tcp([Statement::Redirect(*port)]));
                (ChainKind::Nat, DSTNAT)
            }
        };
        self.base("inbound", Base { kind, hook: Hook::Prerouting, priority }, rules);
    }

    /// A source that is not the pod's tells the proxy's connections to the application from all
    /// others: only a transparent socket can have it. The answers to it would leave the pod
    /// otherwise.
    fn answers(&mut self, mark: Mark) {
        let connects = [
            Statement::Match(Match::Syn),
            Statement::Match(Match::DestinationIsLocal),
            Statement::Match(Match::SourceIsForeign),
            Statement::SetMark { of: Marked::Connection, mark },
        ];
        let answers = [
            Statement::Match(Match::Reply),
            Statement::Match(Match::Marked { of: Marked::Connection, mark }),
            Statement::SetMark { of: Marked::Packet, mark },
        ];
        let rules = vec![
            rule(connects, "the proxy connects with the client's address"),
            rule(answers, "the application's answers return to the proxy"),
        ];
        let base = Base { kind: ChainKind::Route, hook: Hook::Output, priority: MANGLE };
        self.base("answers", base, rules);
    }

    fn outbound(&mut self, outbound: &Outbound, marks: &[Mark], owners: Vec<Owner>) {
        let Outbound { port, destinations, ports, except_destinations, except_ports } = outbound;
        let family = self.table.family;
        let marks = marks.iter().map(|mark| Match::Marked { of: Marked::Packet, mark: *mark });
        let exempt = owners.into_iter().map(Match::Owner).chain(marks);
        let mut rules: Vec<Rule> =
            exempt.map(|exempt| accept(exempt, "the proxy's own connections")).collect();
        rules.push(accept(Match::OutputInterface("lo"), "connections within the pod"));
        rules.push(accept(Match::OtherProtocol(Protocol::Tcp), "TCP only"));
        let excepted = address_ranges(except_destinations, family);
        rules.extend(self.except(Field::Daddr, OUTBOUND_EXCEPT_DESTINATIONS, excepted));
        rules.extend(self.only(Field::Daddr, OUTBOUND_DESTINATIONS, address_ranges(destinations, family)));
        rules.extend(self.except(Field::Dport, OUTBOUND_EXCEPT_PORTS, port_ranges(except_ports)));
        rules.extend(self.only_ports(OUTBOUND_PORTS, ports));
        rules.push(tcp([Statement::Redirect(*port)]));
        let base = Base { kind: ChainKind::Nat, hook: Hook::Output, priority: DSTNAT };
        self.base("outbound", base, rules);
    }

    fn only_ports(&mut self, name: Name, ports: &Ports) -> Option<Rule> {
        match ports {
            Ports::All => None,
            Ports::Some(ranges) => self.only(Field::Dport, name, port_ranges(ranges)),
        }
    }

    /// Leaves alone what is in the ranges. Without a range, there is neither rule nor set.
    fn except(&mut self, field: Field, name: Name, ranges: Vec<Range>) -> Option<Rule> {
        self.in_ranges(field, name, ranges, false)
    }

    /// Leaves alone what is not in the ranges. Without a range, there is neither rule nor set.
    fn only(&mut self, field: Field, name: Name, ranges: Vec<Range>) -> Option<Rule> {
        self.in_ranges(field, name, ranges, true)
    }

    fn in_ranges(&mut self, field: Field, name: Name, ranges: Vec<Range>, negated: bool) -> Option<Rule> {
        if ranges.is_empty() {
            return None;
        }
        self.elements.extend(ranges.into_iter().map(|(first, last)| Element {
            set: name.clone(),
            key: vec![first],
            last: Some(vec![last]),
            data: Data::None,
        }));
        self.table.sets.push(Set {
            name: name.clone(),
            key: vec![field],
            data: DataType::None,
            interval: true,
            dynamic: false,
            size: None,
        });
        let lookup = Lookup { key: vec![field], set: name };
        let statements = vec![Statement::InSet { lookup, negated }, Statement::Verdict(Verdict::Accept)];
        Some(Rule { statements, comment: None })
    }

    fn base(&mut self, name: &'static str, base: Base, rules: Vec<Rule>) {
        self.table.chains.push(Chain { name: Name::constant(name), base: Some(base), rules });
    }
}

fn owners<E>(exempt: &Exempt, cgroup_id: impl Fn(&str) -> Result<u64, E>) -> Result<Vec<Owner>, E> {
    // Marks are no owners.
    let Exempt { uids, gids, marks: _, net_cls, cgroups } = exempt;
    let mut owners: Vec<Owner> = uids.iter().map(|id| Owner::User(*id)).collect();
    owners.extend(gids.iter().map(|id| Owner::Group(*id)));
    owners.extend(net_cls.iter().map(|id| Owner::NetCls(*id)));
    for path in cgroups {
        owners.push(Owner::Cgroup { path: path.clone(), id: cgroup_id(path)? });
    }
    Ok(owners)
}

fn rule(statements: impl Into<Vec<Statement>>, comment: &'static str) -> Rule {
    Rule { statements: statements.into(), comment: Some(comment) }
}

fn accept(what: Match, comment: &'static str) -> Rule {
    rule([Statement::Match(what), Statement::Verdict(Verdict::Accept)], comment)
}

fn drop() -> Statement {
    Statement::Verdict(Verdict::Drop)
}

/// A rule for TCP. The kernel takes a port to redirect to in such a rule only.
fn tcp<const N: usize>(then: [Statement; N]) -> Rule {
    let protocol = Statement::Match(Match::Protocol(Protocol::Tcp));
    Rule { statements: std::iter::once(protocol).chain(then).collect(), comment: None }
}

/// The first and the last value.
type Range = (Value, Value);

fn port_ranges(ranges: &[PortRange]) -> Vec<Range> {
    merged(ranges).into_iter().map(|range| (Value::Port(range.first), Value::Port(range.last))).collect()
}

/// The ranges of a family. The kernel refuses ranges that overlap.
fn address_ranges(networks: &[IpNet], family: Family) -> Vec<Range> {
    let of_family: Vec<IpNet> =
        networks.iter().filter(|range| Family::of(range.addr()) == family).copied().collect();
    let address = |address: IpAddr| Value::Address(address);
    let ranges = IpNet::aggregate(&of_family).into_iter();
    ranges.map(|range| (address(range.network()), address(range.broadcast()))).collect()
}

#[cfg(test)]
mod tests;
