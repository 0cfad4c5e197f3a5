//! Short forms, so that the rules read like rules.

use crate::nft::{
    Base, Chain, ChainKind, Field, Hook, Lookup, Match, Name, NewPriority, Rule, Statement, Verdict,
};

/// A chain that others jump to.
pub(super) fn chain(name: Name, rules: Vec<Rule>) -> Chain {
    Chain { name, base: None, rules }
}

/// A chain that packets enter by a hook.
pub(super) fn base(
    name: &'static str,
    kind: ChainKind,
    hook: Hook,
    priority: i32,
    rules: Vec<Rule>,
) -> Chain {
    Chain { name: Name::constant(name), base: Some(Base { kind, hook, priority }), rules }
}

/// A rule without a comment.
pub(super) fn rule(statements: impl Into<Vec<Statement>>) -> Rule {
    Rule { statements: statements.into(), comment: None }
}

impl Rule {
    /// Adds a comment that `nft list` shows.
    pub(super) fn saying(mut self, comment: &'static str) -> Self {
        self.comment = Some(comment);
        self
    }
}

pub(super) fn matches(what: Match) -> Statement {
    Statement::Match(what)
}

pub(super) fn goto(chain: &Name) -> Statement {
    Statement::Verdict(Verdict::Goto(chain.clone()))
}

pub(super) fn jump(chain: &Name) -> Statement {
    Statement::Verdict(Verdict::Jump(chain.clone()))
}

pub(super) fn drop() -> Statement {
    Statement::Verdict(Verdict::Drop)
}

pub(super) fn lookup(key: impl Into<Vec<Field>>, set: &Name) -> Lookup {
    Lookup { key: key.into(), set: set.clone() }
}

/// Goes on if the key is in the set.
pub(super) fn is_in(key: impl Into<Vec<Field>>, set: &Name) -> Statement {
    Statement::InSet { lookup: lookup(key, set), negated: false }
}

/// Goes on if the key is not in the set.
pub(super) fn is_not_in(key: impl Into<Vec<Field>>, set: &Name) -> Statement {
    Statement::InSet { lookup: lookup(key, set), negated: true }
}

/// Sets the scratch register from a map; ends the rule if the key is not there.
pub(super) fn set_from(key: impl Into<Vec<Field>>, map: &Name) -> Statement {
    Statement::SetPriority(NewPriority::Map(lookup(key, map)))
}

/// The destination as the packet has it.
pub(super) const DESTINATION: [Field; 3] = [Field::Daddr, Field::L4Proto, Field::Dport];
/// The destination of a packet to the node itself.
pub(super) const NODE_DESTINATION: [Field; 2] = [Field::L4Proto, Field::Dport];
