//! The interpreter.

use std::net::IpAddr;

use crate::{
    model::Target,
    nft::{
        Chain, ChainKind, Data, Element, Field, Handle, Hook, InterfacePattern, Lookup, Match, Name,
        NewPriority, Protocol, Statement, Value, Verdict,
    },
    ruleset::Ruleset,
    text,
};

use super::{Outcome, Packet, Step, Story, Untraceable};

/// The kernel's limit of nested jumps.
const DEEPEST: usize = 16;

/// How a chain, or a rule, ends.
enum Flow {
    /// The next rule, or the next chain.
    On,
    /// This base chain is done with the packet.
    Accept,
    Rejected,
    Dropped,
}

/// How a statement ends.
enum Effect {
    /// The next statement.
    Next,
    /// The next rule.
    NoMatch,
    To(Verdict),
    End(Flow),
}

/// A packet on its way.
pub(super) struct Walk<'a> {
    ruleset: &'a Ruleset,
    addresses: &'a [IpAddr],
    packet: &'a Packet,
    /// The random number that every choice gets.
    random: u32,
    destination: Target,
    priority: Handle,
    redirected: bool,
    masqueraded: bool,
    hook: Hook,
    steps: Vec<Step>,
    remembered: Vec<Element>,
    choices: u32,
}

impl<'a> Walk<'a> {
    pub(super) fn new(
        ruleset: &'a Ruleset,
        addresses: &'a [IpAddr],
        packet: &'a Packet,
        random: u32,
    ) -> Self {
        Self {
            ruleset,
            addresses,
            packet,
            random,
            destination: Target { address: packet.destination, port: packet.port },
            priority: Handle::NONE,
            redirected: false,
            masqueraded: false,
            hook: Hook::Prerouting,
            steps: Vec::new(),
            remembered: Vec::new(),
            choices: 1,
        }
    }

    /// Follows the packet to its end. Returns the story and the number of random choices there
    /// were.
    pub(super) fn run(mut self) -> Result<(Story, u32), Untraceable> {
        let stopped = if self.packet.interface.is_some() { self.arriving() } else { self.leaving() }?;
        let outcome = match stopped {
            Some(outcome) => outcome,
            None if self.redirected => {
                Outcome::Redirected { to: self.destination, masqueraded: self.masqueraded }
            }
            None => Outcome::Untouched,
        };
        let Self { steps, remembered, choices, .. } = self;
        Ok((Story { steps, outcome, remembered, choices }, choices))
    }

    /// A packet from another machine or from a pod. Forwarding computes the priority anew.
    fn arriving(&mut self) -> Result<Option<Outcome>, Untraceable> {
        if let Some(end) = self.hook(Hook::Prerouting, true)? {
            return Ok(Some(end));
        }
        if self.is_local(self.destination.address) {
            return self.hook(Hook::Input, true);
        }
        self.priority = Handle::NONE;
        if let Some(end) = self.hook(Hook::Forward, true)? {
            return Ok(Some(end));
        }
        self.hook(Hook::Postrouting, true)
    }

    /// A packet of the node itself. One to the node itself comes in again by the loopback
    /// interface; by then both its addresses are settled, so nat chains do not see it again.
    fn leaving(&mut self) -> Result<Option<Outcome>, Untraceable> {
        for hook in [Hook::Output, Hook::Postrouting] {
            if let Some(end) = self.hook(hook, true)? {
                return Ok(Some(end));
            }
        }
        if !self.is_local(self.destination.address) {
            return Ok(None);
        }
        if let Some(end) = self.hook(Hook::Prerouting, false)? {
            return Ok(Some(end));
        }
        self.hook(Hook::Input, false)
    }

    fn is_local(&self, address: IpAddr) -> bool {
        address.is_loopback() || self.addresses.contains(&address)
    }

    /// Runs the base chains of a hook, in the order of their priorities.
    fn hook(&mut self, hook: Hook, with_nat: bool) -> Result<Option<Outcome>, Untraceable> {
        self.hook = hook;
        let chains = self.ruleset.table().chains.iter();
        let mut entered: Vec<(i32, &Chain)> = chains
            .filter_map(|chain| {
                let base = chain.base.filter(|base| base.hook == hook)?;
                (with_nat || base.kind != ChainKind::Nat).then_some((base.priority, chain))
            })
            .collect();
        entered.sort_by_key(|(priority, _)| *priority);
        for (_, chain) in entered {
            match self.chain(chain, 0)? {
                Flow::On | Flow::Accept => {}
                Flow::Rejected => return Ok(Some(Outcome::Rejected)),
                Flow::Dropped => return Ok(Some(Outcome::Dropped)),
            }
        }
        Ok(None)
    }

    fn chain(&mut self, chain: &Chain, depth: usize) -> Result<Flow, Untraceable> {
        if depth > DEEPEST {
            return Err(Untraceable::TooDeep(chain.name.clone()));
        }
        for (index, rule) in chain.rules.iter().enumerate() {
            let mut verdict = None;
            let mut end = None;
            let mut applied = true;
            for statement in &rule.statements {
                let Some(effect) = self.statement(statement)? else {
                    let text = text::rule(self.ruleset.table().family, rule);
                    return Err(Untraceable::Unknown(text, chain.name.clone()));
                };
                match effect {
                    Effect::Next => continue,
                    Effect::NoMatch => applied = false,
                    Effect::To(to) => verdict = Some(to),
                    Effect::End(flow) => end = Some(flow),
                }
                break;
            }
            if applied {
                let chain = chain.name.clone();
                self.steps.push(Step { hook: self.hook, chain, rule: index, handle: self.priority });
            }
            match verdict {
                Some(Verdict::Accept) => return Ok(Flow::Accept),
                Some(Verdict::Drop) => return Ok(Flow::Dropped),
                Some(Verdict::Goto(to)) => return self.named(&to, depth + 1),
                Some(Verdict::Jump(to)) => match self.named(&to, depth + 1)? {
                    Flow::On => {}
                    end => return Ok(end),
                },
                None => {}
            }
            if let Some(end) = end {
                return Ok(end);
            }
        }
        Ok(Flow::On)
    }

    fn named(&mut self, name: &Name, depth: usize) -> Result<Flow, Untraceable> {
        let ruleset = self.ruleset;
        let chain = ruleset.table().chain(name).ok_or_else(|| Untraceable::NoChain(name.clone()))?;
        self.chain(chain, depth)
    }

    /// The effect of a statement; `None` if it depends on more than the packet.
    fn statement(&mut self, statement: &Statement) -> Result<Option<Effect>, Untraceable> {
        let matched = |matches| if matches { Effect::Next } else { Effect::NoMatch };
        Ok(Some(match statement {
            Statement::Match(what) => match self.matches(what) {
                Some(does) => matched(does),
                None => return Ok(None),
            },
            Statement::InSet { lookup, negated } => matched(self.find(lookup).is_some() != *negated),
            Statement::SetPriority(value) => {
                match value {
                    NewPriority::None => self.priority = Handle::NONE,
                    NewPriority::And(mask) => self.priority.0 &= mask.0,
                    NewPriority::Or(mask) => self.priority.0 |= mask.0,
                    NewPriority::Map(lookup) => match self.find(lookup) {
                        None => return Ok(Some(Effect::NoMatch)),
                        Some(Data::Values(values)) => match values.as_slice() {
                            [Value::Handle(handle)] => self.priority = *handle,
                            _ => return Err(Untraceable::WrongData(lookup.set.clone())),
                        },
                        Some(_) => return Err(Untraceable::WrongData(lookup.set.clone())),
                    },
                }
                Effect::Next
            }
            Statement::PriorityVerdict { mask, map } => {
                match self.ruleset.find(map, &[Value::Handle(Handle(self.priority.0 & mask.0))]) {
                    None => Effect::NoMatch,
                    Some(Data::Verdict(verdict)) => Effect::To(verdict.clone()),
                    Some(_) => return Err(Untraceable::WrongData(map.clone())),
                }
            }
            Statement::Dnat(lookup) => match self.find(lookup) {
                None => Effect::NoMatch,
                Some(data) => {
                    self.destination =
                        endpoint(data).ok_or_else(|| Untraceable::WrongData(lookup.set.clone()))?;
                    self.redirected = true;
                    Effect::End(Flow::Accept)
                }
            },
            Statement::Update { lookup, data, .. } => {
                let key = self.values(&lookup.key);
                let data = Data::Values(self.values(data));
                self.remembered.push(Element { set: lookup.set.clone(), key, last: None, data });
                Effect::Next
            }
            Statement::Masquerade => {
                self.masqueraded = true;
                Effect::End(Flow::Accept)
            }
            Statement::Reject => Effect::End(Flow::Rejected),
            Statement::Verdict(verdict) => Effect::To(verdict.clone()),
            Statement::SetMark { .. } | Statement::Tproxy(_) | Statement::Redirect(_) => return Ok(None),
        }))
    }

    fn matches(&self, what: &Match) -> Option<bool> {
        Some(match what {
            Match::Protocol(protocol) => self.packet.protocol == *protocol,
            Match::OtherProtocol(protocol) => self.packet.protocol != *protocol,
            Match::Port(port) => self.destination.port == *port,
            Match::Syn => self.packet.protocol == Protocol::Tcp,
            Match::Source { prefix, negated } => prefix.contains(&self.packet.source) != *negated,
            Match::Interface { pattern, negated } => {
                let name = self.packet.interface.as_deref().unwrap_or_default();
                let matches = match pattern {
                    InterfacePattern::Name(expected) => name == expected,
                    InterfacePattern::Prefix(prefix) => name.starts_with(prefix.as_str()),
                };
                matches != *negated
            }
            Match::SourceIsLocal => self.is_local(self.packet.source),
            Match::SourceIsForeign => !self.is_local(self.packet.source),
            Match::DestinationIsLocal => self.is_local(self.destination.address),
            Match::DestinationIsForeign => !self.is_local(self.destination.address),
            Match::PriorityBits { mask, set } => (self.priority.0 & mask.0 != 0) == *set,
            Match::NewConnection => true,
            Match::Redirected => self.redirected,
            Match::Reply => false,
            Match::OutputInterface(_) | Match::Marked { .. } | Match::Owner(_) => return None,
        })
    }

    fn find(&mut self, lookup: &Lookup) -> Option<&'a Data> {
        let key = self.values(&lookup.key);
        self.ruleset.find(&lookup.set, &key)
    }

    fn values(&mut self, fields: &[Field]) -> Vec<Value> {
        fields.iter().map(|field| self.value(*field)).collect()
    }

    fn value(&mut self, field: Field) -> Value {
        match field {
            Field::Saddr => Value::Address(self.packet.source),
            Field::Daddr => Value::Address(self.destination.address),
            Field::L4Proto => Value::Protocol(self.packet.protocol),
            Field::Dport => Value::Port(self.destination.port),
            Field::Priority => Value::Handle(self.priority),
            Field::Random(modulus) => {
                self.choices = self.choices.max(modulus);
                Value::Index(self.random % modulus.max(1))
            }
            Field::OriginalDaddr => Value::Address(self.packet.destination),
            Field::OriginalDport => Value::Port(self.packet.port),
        }
    }
}

fn endpoint(data: &Data) -> Option<Target> {
    match data {
        Data::Values(values) => match values.as_slice() {
            [Value::Address(address), Value::Port(port)] => Some(Target { address: *address, port: *port }),
            _ => None,
        },
        Data::None | Data::Verdict(_) => None,
    }
}
