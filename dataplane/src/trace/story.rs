use std::fmt;

use crate::{
    model::Target,
    nft::{Element, Handle, Hook, Name, Table},
    text,
};

/// One way that a packet can take.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Story {
    /// The rules that applied, in order.
    pub steps: Vec<Step>,
    /// The end.
    pub outcome: Outcome,
    /// Clients that rules have remembered.
    pub remembered: Vec<Element>,
    /// The number of endpoints among which one was chosen at random.
    pub choices: u32,
}

/// A rule that applied: all its statements matched.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Step {
    /// The hook.
    pub hook: Hook,
    /// The chain.
    pub chain: Name,
    /// The place of the rule in the chain.
    pub rule: usize,
    /// The scratch register after it.
    pub handle: Handle,
}

/// The end of a packet's way through the rules.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Outcome {
    /// No rule changed it.
    Untouched,
    /// It goes to an endpoint.
    Redirected {
        /// The endpoint.
        to: Target,
        /// Whether the endpoint sees an address of this node as its client.
        masqueraded: bool,
    },
    /// The client gets an ICMP error.
    Rejected,
    /// The client gets no answer.
    Dropped,
}

impl fmt::Display for Outcome {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Untouched => out.write_str("not redirected: goes on to its destination"),
            Self::Redirected { to, masqueraded: false } => {
                write!(out, "redirected to {to}, the source address is kept")
            }
            Self::Redirected { to, masqueraded: true } => {
                write!(out, "redirected to {to}, the source address becomes one of this node")
            }
            Self::Rejected => out.write_str("rejected: the client gets \"connection refused\""),
            Self::Dropped => out.write_str("dropped: the client gets no answer"),
        }
    }
}

impl Story {
    /// Tells the story, a line for each rule that applied and one for the end.
    pub fn tell(&self, table: &Table) -> Vec<String> {
        let mut lines: Vec<String> = self
            .steps
            .iter()
            .map(|step| {
                let rule = table.chain(&step.chain).and_then(|chain| chain.rules.get(step.rule));
                let rule = rule.map(|rule| text::rule(table.family, rule)).unwrap_or_default();
                let handle = match step.handle {
                    Handle::NONE => String::new(),
                    handle => format!(" [{handle}]"),
                };
                format!("{}, {}: {rule}{handle}", step.hook.keyword(), step.chain)
            })
            .collect();
        let chance = if self.choices > 1 { format!(" (1 of {})", self.choices) } else { String::new() };
        lines.push(format!("{}{chance}", self.outcome));
        lines
    }
}
