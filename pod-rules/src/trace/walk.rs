//! One way of one packet.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use super::live::Answer;
use super::{By, Live, Outcome, Step, Trace};
use crate::decode::PodRules;
use crate::routing::{LOOPBACK, Way};
use crate::rules::{Base, ChainKind, Hook, Rule, Statement, Table, Tproxy, Verdict};

/// The kernel refuses deeper jumps.
const DEEPEST: usize = 16;

/// The result of a chain or a rule.
enum Flow {
    /// The next rule, or the caller's.
    Next,
    /// The caller's next rule.
    Return,
    Accept,
    Drop,
}

pub(super) struct Walk<'a> {
    rules: &'a PodRules,
    /// The pod's address.
    own: IpAddr,
    packet: Live,
    by: By,
    /// The port of the transparent socket that gets the packet.
    tproxied: Option<u16>,
    /// Rules of the kind `nat` have seen the connection.
    translated: bool,
    steps: Vec<Step>,
    /// Whether the first undecided statements match; the further ones do not.
    script: &'a [bool],
    choices: Vec<String>,
}

impl<'a> Walk<'a> {
    pub(super) fn new(rules: &'a PodRules, own: IpAddr, packet: Live, script: &'a [bool]) -> Self {
        let (steps, choices) = (Vec::new(), Vec::new());
        let (by, tproxied, translated) = (By::Itself, None, !packet.is_first());
        Self { rules, own, packet, by, tproxied, translated, steps, script, choices }
    }

    /// Returns the way, and the statements that could not be decided on it.
    pub(super) fn run(mut self) -> (Trace, Vec<String>) {
        let outcome = if self.packet.sender.is_some() { self.send() } else { self.arrive() };
        let connection_mark = self.packet.connection_mark;
        (Trace { steps: self.steps, outcome, connection_mark }, self.choices)
    }

    /// A process of the pod sends the packet.
    fn send(&mut self) -> Outcome {
        if self.route().is_none() {
            return Outcome::NoRoute;
        }
        if let Some(end) = self.hook(Hook::Output) {
            return end;
        }
        if self.route().is_none() {
            return Outcome::NoRoute;
        }
        if let Some(end) = self.hook(Hook::Postrouting) {
            return end;
        }
        if self.packet.output.as_deref() != Some(LOOPBACK) {
            return Outcome::Leaves { address: self.packet.destination, port: self.packet.port };
        }
        // It arrives again, without its socket and with the route that it has.
        self.packet.input = self.packet.output.take();
        self.packet.sender = None;
        if let Some(end) = self.hook(Hook::Prerouting) {
            return end;
        }
        self.deliver()
    }

    /// The packet comes from elsewhere.
    fn arrive(&mut self) -> Outcome {
        self.packet.input = Some(self.rules.routing.outside().to_owned());
        if let Some(end) = self.hook(Hook::Prerouting) {
            return end;
        }
        match self.way() {
            Way::Local => self.deliver(),
            Way::Out(_) | Way::None => Outcome::NoRoute,
        }
    }

    fn deliver(&mut self) -> Outcome {
        if let Some(end) = self.hook(Hook::Input) {
            return end;
        }
        let port = self.tproxied.unwrap_or(self.packet.port);
        Outcome::Delivered { port, by: self.by }
    }

    fn way(&self) -> Way {
        let Live { source, destination, mark, input, .. } = &self.packet;
        self.rules.routing.way(*source, *destination, *mark, input.as_deref())
    }

    /// Chooses the outgoing interface.
    fn route(&mut self) -> Option<()> {
        self.packet.output = match self.way() {
            Way::Local => Some(LOOPBACK.to_owned()),
            Way::Out(interface) => Some(interface),
            Way::None => None,
        };
        self.packet.output.as_ref().map(|_| ())
    }

    /// All chains of a hook. Returns the end of the way, if it is here.
    fn hook(&mut self, hook: Hook) -> Option<Outcome> {
        let rules = self.rules;
        let tables = rules.ruleset.tables.iter().filter(|table| table.family.sees(self.packet.destination));
        let chains =
            tables.flat_map(|table| table.chains.iter().map(move |(name, chain)| (table, name, chain)));
        let mut chains: Vec<(&Table, &str, Base)> = chains
            .filter_map(|(table, name, chain)| Some((table, name.as_str(), chain.base?)))
            .filter(|(.., base)| base.hook == hook)
            .collect();
        chains.sort_by_key(|(.., base)| base.priority);
        let rewrites_destination = matches!(hook, Hook::Prerouting | Hook::Output);
        for (table, name, base) in chains {
            if base.kind == ChainKind::Nat && (self.translated || !rewrites_destination) {
                continue;
            }
            let flow = self.chain(table, name, hook, 0);
            let dropped = match flow {
                Flow::Drop => true,
                Flow::Accept => false,
                Flow::Next | Flow::Return => base.drops,
            };
            if dropped {
                return Some(Outcome::Dropped);
            }
            // Chains of this kind exist because the route depends on the mark.
            if base.kind == ChainKind::Route && self.route().is_none() {
                return Some(Outcome::NoRoute);
            }
        }
        self.translated |= rewrites_destination;
        None
    }

    fn chain(&mut self, table: &Table, name: &str, hook: Hook, depth: usize) -> Flow {
        let Some(chain) = table.chains.get(name).filter(|_| depth < DEEPEST) else { return Flow::Next };
        for rule in &chain.rules {
            match self.rule(table, name, rule, hook, depth) {
                Flow::Next => {}
                Flow::Return => return Flow::Next,
                end => return end,
            }
        }
        Flow::Next
    }

    fn rule(&mut self, table: &Table, chain: &str, rule: &Rule, hook: Hook, depth: usize) -> Flow {
        let mut recorded = false;
        for statement in &rule.statements {
            match statement {
                Statement::Match(test) => match self.packet.matches(test, &self.rules.routing) {
                    Answer::Yes => continue,
                    Answer::Unknown if self.choose(&test.to_string()) => continue,
                    Answer::No | Answer::Unknown => return Flow::Next,
                },
                Statement::Unknown(_) if self.choose(&statement.to_string()) => {}
                Statement::Unknown(_) => return Flow::Next,
                _ => {}
            }
            if !recorded {
                recorded = true;
                self.record(table, chain, rule, hook);
            }
            match self.act(statement, table, hook, depth) {
                Flow::Next => {}
                end => return end,
            }
        }
        Flow::Next
    }

    fn act(&mut self, statement: &Statement, table: &Table, hook: Hook, depth: usize) -> Flow {
        match statement {
            Statement::Match(_) | Statement::Unknown(_) => Flow::Next,
            Statement::Assign(assign) => {
                self.packet.assign(*assign);
                Flow::Next
            }
            Statement::Redirect { port } => self.rewrite(hook, Some(self.here(hook)), *port),
            Statement::DestinationNat { address, port } => self.rewrite(hook, *address, *port),
            Statement::Tproxy(Tproxy { port, mark, decides }) => {
                self.tproxied = Some(port.unwrap_or(self.packet.port));
                self.by = By::Tproxy;
                if let Some(mark) = mark {
                    self.packet.assign(*mark);
                }
                if *decides { Flow::Accept } else { Flow::Next }
            }
            Statement::SourceNat | Statement::Verdict(Verdict::Accept) => Flow::Accept,
            Statement::Verdict(Verdict::Drop) => Flow::Drop,
            Statement::Verdict(Verdict::Return) => Flow::Return,
            Statement::Verdict(Verdict::Jump(name)) => self.chain(table, name, hook, depth + 1),
            Statement::Verdict(Verdict::Goto(name)) => match self.chain(table, name, hook, depth + 1) {
                Flow::Next => Flow::Return,
                end => end,
            },
        }
    }

    fn rewrite(&mut self, hook: Hook, address: Option<IpAddr>, port: Option<u16>) -> Flow {
        self.packet.destination = address.unwrap_or(self.packet.destination);
        self.packet.port = port.unwrap_or(self.packet.port);
        self.by = By::Redirect;
        self.translated = true;
        if hook == Hook::Output {
            // A destination elsewhere leaves by another interface. Without a route, `send` ends the
            // way.
            let _ = self.route();
        }
        Flow::Accept
    }

    /// The address that REDIRECT sends a packet to.
    fn here(&self, hook: Hook) -> IpAddr {
        let arrives = hook == Hook::Prerouting && self.packet.input.as_deref() != Some(LOOPBACK);
        match self.packet.destination {
            _ if arrives => self.own,
            IpAddr::V4(_) => Ipv4Addr::LOCALHOST.into(),
            IpAddr::V6(_) => Ipv6Addr::LOCALHOST.into(),
        }
    }

    /// Whether an undecided statement matches on this way.
    fn choose(&mut self, what: &str) -> bool {
        let chosen = self.script.get(self.choices.len()).copied().unwrap_or(false);
        self.choices.push(what.to_owned());
        chosen
    }

    fn record(&mut self, table: &Table, chain: &str, rule: &Rule, hook: Hook) {
        self.steps.push(Step {
            hook: hook.keyword().to_owned(),
            table: table.to_string(),
            chain: chain.to_owned(),
            rule: rule.to_string(),
        });
    }
}
