//! A table without its elements, as the kernel has it or would have it: two of them can be
//! compared.
//!
//! The comparison finds every edit of a rule, a chain or a set. Attributes that newer kernels
//! report in addition do not count, so a table that an older agent loaded is adopted as it is.

use std::collections::BTreeMap;
use std::fmt;

use super::attributes::{Attribute, Malformed};
use super::dump::chain_is_of;
use super::expression::{Expression, read_all};
use super::lower;
use super::message::Message;
use super::nf_tables::{chain, hook, message as kind, rule, set, verdict};
use super::operation::comment_data;
use super::set::SetDescription;
use crate::nft::{Family, Name, Set, Table};

/// The sets, chains and rules of a table.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Image {
    chains: BTreeMap<String, ChainImage>,
    sets: BTreeMap<String, SetDescription>,
}

#[derive(Debug, Clone, Default, PartialEq, Eq)]
struct ChainImage {
    base: Option<BaseImage>,
    rules: Vec<RuleImage>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
struct BaseImage {
    kind: String,
    hook: u32,
    priority: i32,
    policy: u32,
}

#[derive(Debug, Clone, PartialEq, Eq)]
struct RuleImage {
    expressions: Vec<Expression>,
    user_data: Vec<u8>,
}

impl Image {
    /// The image of a table that is still to be loaded.
    pub fn of(table: &Table) -> Self {
        let sets = table.sets.iter();
        let chains = table.chains.iter().map(|chain| {
            let base = chain.base.map(|base| BaseImage {
                kind: base.kind.keyword().to_owned(),
                hook: base.hook.number(),
                priority: base.priority,
                policy: verdict::ACCEPT.cast_unsigned(),
            });
            let rules = chain.rules.iter().map(|rule| RuleImage {
                expressions: lower::rule(rule, table.family),
                user_data: rule.comment.map(comment_data).unwrap_or_default(),
            });
            (chain.name.as_str().to_owned(), ChainImage { base, rules: rules.collect() })
        });
        Self {
            chains: chains.collect(),
            sets: sets
                .map(|set| (set.name.as_str().to_owned(), SetDescription::of(set, table.family)))
                .collect(),
        }
    }

    /// Adds an answer to a query for chains, rules or sets.
    pub fn read(&mut self, message: Message<'_>, family: Family, table: &Name) -> Result<(), Malformed> {
        if message.family()? != lower::protocol_family(family) {
            return Ok(());
        }
        match message.kind {
            kind::NEW_CHAIN if chain_is_of(message, table)? => self.read_chain(message),
            kind::NEW_RULE => self.read_rule(message),
            kind::NEW_SET => self.read_set(message),
            _ => Ok(()),
        }
    }

    fn read_chain(&mut self, message: Message<'_>) -> Result<(), Malformed> {
        let attributes = message.attributes()?;
        let name = attributes.require(chain::NAME)?.text()?.to_owned();
        let base = match attributes.find(chain::HOOK)? {
            None => None,
            Some(hook) => {
                let kind = attributes.find(chain::TYPE)?.map(Attribute::text).transpose()?;
                let policy = attributes.find(chain::POLICY)?.map(Attribute::be32).transpose()?;
                Some(BaseImage {
                    kind: kind.unwrap_or_default().to_owned(),
                    hook: hook.nested().require(hook::NUMBER)?.be32()?,
                    priority: hook.nested().require(hook::PRIORITY)?.be32()?.cast_signed(),
                    policy: policy.unwrap_or_default(),
                })
            }
        };
        self.chains.entry(name).or_default().base = base;
        Ok(())
    }

    /// Rules come in order.
    fn read_rule(&mut self, message: Message<'_>) -> Result<(), Malformed> {
        let attributes = message.attributes()?;
        let name = attributes.require(rule::CHAIN)?.text()?.to_owned();
        let expressions = match attributes.find(rule::EXPRESSIONS)? {
            Some(list) => read_all(list.nested())?,
            None => Vec::new(),
        };
        let user_data = attributes.find(rule::USER_DATA)?.map(|each| each.value.to_vec());
        let rule = RuleImage { expressions, user_data: user_data.unwrap_or_default() };
        self.chains.entry(name).or_default().rules.push(rule);
        Ok(())
    }

    fn read_set(&mut self, message: Message<'_>) -> Result<(), Malformed> {
        let attributes = message.attributes()?;
        let name = attributes.require(set::NAME)?.text()?.to_owned();
        self.sets.insert(name, SetDescription::read(attributes)?);
        Ok(())
    }

    /// Whether there is a set with this name and description.
    pub fn has(&self, set: &Set, family: Family) -> bool {
        self.sets.get(set.name.as_str()).is_some_and(|found| *found == SetDescription::of(set, family))
    }

    /// The first difference of a found image from this one.
    pub fn difference(&self, found: &Self) -> Option<Difference> {
        for (name, set) in &self.sets {
            match found.sets.get(name) {
                None => return Some(Difference::MissingSet(name.clone())),
                Some(other) if other != set => return Some(Difference::ChangedSet(name.clone())),
                Some(_) => {}
            }
        }
        for (name, chain) in &self.chains {
            let Some(other) = found.chains.get(name) else {
                return Some(Difference::MissingChain(name.clone()));
            };
            if other.base != chain.base {
                return Some(Difference::ChangedHook(name.clone()));
            }
            if other.rules.len() != chain.rules.len() {
                let (expected, found) = (chain.rules.len(), other.rules.len());
                return Some(Difference::NumberOfRules { chain: name.clone(), expected, found });
            }
            if let Some(place) = chain.rules.iter().zip(&other.rules).position(|(one, other)| one != other) {
                return Some(Difference::ChangedRule { chain: name.clone(), number: place + 1 });
            }
        }
        let foreign_set = found.sets.keys().find(|name| !self.sets.contains_key(*name));
        let foreign_chain = found.chains.keys().find(|name| !self.chains.contains_key(*name));
        foreign_set
            .map(|name| Difference::ForeignSet(name.clone()))
            .or_else(|| foreign_chain.map(|name| Difference::ForeignChain(name.clone())))
    }
}

/// How a table in the kernel differs from the wanted one.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Difference {
    /// The table has an owner and should have none, or the other way round.
    Ownership,
    /// A set has elements that a table of ours cannot have.
    ForeignElements {
        /// The set.
        set: String,
        /// The number of elements.
        number: usize,
    },
    /// A set is missing.
    MissingSet(String),
    /// A set has another type, other flags or another size.
    ChangedSet(String),
    /// There is a set that is not ours.
    ForeignSet(String),
    /// A chain is missing.
    MissingChain(String),
    /// A chain has another type, hook, priority or policy.
    ChangedHook(String),
    /// There is a chain that is not ours.
    ForeignChain(String),
    /// A chain has more or fewer rules.
    NumberOfRules {
        /// The chain.
        chain: String,
        /// The number of rules that it should have.
        expected: usize,
        /// The number of rules that it has.
        found: usize,
    },
    /// A rule is another one.
    ChangedRule {
        /// The chain.
        chain: String,
        /// The place of the rule, from 1.
        number: usize,
    },
}

impl fmt::Display for Difference {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Ownership => out.write_str("the flags owner and persist are not as they should be"),
            Self::ForeignElements { set, number } => {
                write!(out, "set {set} has {number} elements that do not belong there")
            }
            Self::MissingSet(name) => write!(out, "set {name} is missing"),
            Self::ChangedSet(name) => write!(out, "set {name} has another type, other flags or another size"),
            Self::ForeignSet(name) => write!(out, "set {name} is not part of the table"),
            Self::MissingChain(name) => write!(out, "chain {name} is missing"),
            Self::ChangedHook(name) => {
                write!(out, "chain {name} has another type, hook, priority or policy")
            }
            Self::ForeignChain(name) => write!(out, "chain {name} is not part of the table"),
            Self::NumberOfRules { chain, expected, found } => {
                write!(out, "chain {chain} has {found} rules instead of {expected}")
            }
            Self::ChangedRule { chain, number } => {
                write!(out, "rule {number} of chain {chain} is another one")
            }
        }
    }
}
