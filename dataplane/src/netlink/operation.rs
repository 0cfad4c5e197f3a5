//! Operations on a table as messages of a batch.

use super::attributes::Writer;
use super::batch::{Batch, Object, Subject, Verb};
use super::element::write_element;
use super::expression::Expression;
use super::field::{Kind, type_of};
use super::lower::{self, protocol_family};
use super::message::flag;
use super::nf_tables::{chain, element_list, hook, list, message, rule, set, table, verdict};
use super::set::SetDescription;
use crate::nft::{Chain, Element, Name, Operation, Rule, Set};
use crate::nft::{Family, Table};

/// Who may change a table.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Ownership {
    /// Every program with `CAP_NET_ADMIN`.
    Shared,
    /// Only the socket that created or adopted it, while that is open (kernel 6.9 and later).
    Exclusive,
}

impl Ownership {
    /// The flags of the table.
    pub(super) fn flags(self) -> u32 {
        match self {
            Self::Shared => 0,
            Self::Exclusive => table::F_OWNER | table::F_PERSIST,
        }
    }
}

/// A table, as operations refer to it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TableId {
    /// The family.
    pub family: Family,
    /// The name.
    pub name: Name,
    /// Who may change it, once it is created.
    pub ownership: Ownership,
}

/// The limit of one list of elements. The length of an attribute has 16 bits; this leaves room for
/// one more element.
const ELEMENTS_LIMIT: usize = 64 * 1024 - 1024;

impl Batch {
    /// Appends operations on a table. Consecutive elements of one set share a message.
    pub fn apply(&mut self, table: &TableId, operations: &[Operation]) {
        for group in operations.chunk_by(same_list) {
            match group {
                [Operation::AddElement(first), ..] => {
                    let elements = group.iter().filter_map(|each| match each {
                        Operation::AddElement(element) => Some(element),
                        _ => None,
                    });
                    self.elements(table, Verb::Add, &first.set, elements);
                }
                [Operation::DeleteElement(first), ..] => {
                    let elements = group.iter().filter_map(|each| match each {
                        Operation::DeleteElement(element) => Some(element),
                        _ => None,
                    });
                    self.elements(table, Verb::Delete, &first.set, elements);
                }
                [only] => self.operation(table, only),
                _ => {}
            }
        }
    }

    /// Appends elements of one set.
    pub fn elements<'a>(
        &mut self,
        table: &TableId,
        verb: Verb,
        set: &Name,
        elements: impl Iterator<Item = &'a Element>,
    ) {
        let (kind, flags) = match verb {
            Verb::Add => (message::NEW_ELEMENT, flag::CREATE),
            Verb::Delete | Verb::Flush => (message::DELETE_ELEMENT, 0),
        };
        let mut elements = elements.peekable();
        while let Some(first) = elements.peek() {
            let key = first.key.iter().map(Kind::of_value).collect();
            self.on(table, verb, Object::Elements, set.as_str(), kind, flags, |out| {
                out.text(element_list::TABLE, table.name.as_str());
                out.text(element_list::SET, set.as_str());
                out.nest(element_list::ELEMENTS, |out| {
                    let start = out.0.len();
                    while out.0.len() - start < ELEMENTS_LIMIT
                        && let Some(element) = elements.next()
                    {
                        write_element(out, element, verb == Verb::Add);
                    }
                });
            });
            self.remember_key(table.family, key);
        }
    }

    /// Appends all elements of a table, set by set.
    pub fn add_elements(&mut self, id: &TableId, table: &Table, elements: &[Element]) {
        for set in &table.sets {
            let of_set = elements.iter().filter(|element| element.set == set.name);
            self.elements(id, Verb::Add, &set.name, of_set);
        }
    }

    fn operation(&mut self, table: &TableId, operation: &Operation) {
        use Operation as Op;
        match operation {
            Op::AddTable => self.add_table(table),
            Op::DeleteTable => {
                self.on(table, Verb::Delete, Object::Table, "", message::DELETE_TABLE, 0, |out| {
                    out.text(table::NAME, table.name.as_str());
                });
            }
            Op::AddSet(set) => self.add_set(table, set),
            Op::DeleteSet(name) => {
                self.on(table, Verb::Delete, Object::Set, name.as_str(), message::DELETE_SET, 0, |out| {
                    out.text(set::TABLE, table.name.as_str());
                    out.text(set::NAME, name.as_str());
                });
            }
            Op::AddChain(chain) => self.add_chain(table, chain),
            Op::DeleteChain(name) => {
                self.on(table, Verb::Delete, Object::Chain, name.as_str(), message::DELETE_CHAIN, 0, |out| {
                    out.text(chain::TABLE, table.name.as_str());
                    out.text(chain::NAME, name.as_str());
                });
            }
            Op::FlushChain(name) => {
                self.on(table, Verb::Flush, Object::Rule, name.as_str(), message::DELETE_RULE, 0, |out| {
                    out.text(rule::TABLE, table.name.as_str());
                    out.text(rule::CHAIN, name.as_str());
                });
            }
            Op::AddRule { chain, rule } => self.add_rule(table, chain, rule),
            Op::AddElement(_) | Op::DeleteElement(_) => {}
        }
    }

    fn add_table(&mut self, table: &TableId) {
        self.on(table, Verb::Add, Object::Table, "", message::NEW_TABLE, flag::CREATE, |out| {
            out.text(table::NAME, table.name.as_str());
            out.be32(table::FLAGS, table.ownership.flags());
        });
    }

    fn add_chain(&mut self, table: &TableId, chain: &Chain) {
        let name = chain.name.as_str();
        self.on(table, Verb::Add, Object::Chain, name, message::NEW_CHAIN, flag::CREATE, |out| {
            out.text(chain::TABLE, table.name.as_str());
            out.text(chain::NAME, name);
            if let Some(base) = &chain.base {
                out.nest(chain::HOOK, |out| {
                    out.be32(hook::NUMBER, base.hook.number());
                    out.be32(hook::PRIORITY, base.priority.cast_unsigned());
                });
                out.be32(chain::POLICY, verdict::ACCEPT.cast_unsigned());
                out.text(chain::TYPE, base.kind.keyword());
            }
        });
    }

    fn add_rule(&mut self, table: &TableId, chain: &Name, rule: &Rule) {
        let expressions = lower::rule(rule, table.family);
        let flags = flag::CREATE | flag::APPEND;
        self.on(table, Verb::Add, Object::Rule, chain.as_str(), message::NEW_RULE, flags, |out| {
            out.text(rule::TABLE, table.name.as_str());
            out.text(rule::CHAIN, chain.as_str());
            out.nest(rule::EXPRESSIONS, |out| write_expressions(out, &expressions));
            if let Some(comment) = rule.comment {
                out.bytes(rule::USER_DATA, &comment_data(comment));
            }
        });
    }

    fn add_set(&mut self, table: &TableId, set: &Set) {
        let description = SetDescription::of(set, table.family);
        // Within one batch, the kernel tells new sets apart by this number.
        let id = self.next_id();
        let name = set.name.as_str();
        self.on(table, Verb::Add, Object::Set, name, message::NEW_SET, flag::CREATE, |out| {
            out.text(set::TABLE, table.name.as_str());
            out.text(set::NAME, name);
            out.be32(set::ID, id);
            description.write(out);
        });
    }

    #[expect(clippy::too_many_arguments, reason = "one place that knows what every message has")]
    fn on(
        &mut self,
        table: &TableId,
        verb: Verb,
        object: Object,
        name: &str,
        kind: u16,
        flags: u16,
        body: impl FnOnce(&mut Writer<'_>),
    ) {
        let subject = Subject {
            verb,
            object,
            table: format!("{} {}", table.family.keyword(), table.name),
            name: name.to_owned(),
        };
        self.push(subject, kind, flags, protocol_family(table.family), body);
    }
}

/// The operations that create a table: sets and chains before the rules that refer to them.
pub fn creation(table: &Table) -> Vec<Operation> {
    let sets = table.sets.iter().cloned().map(Operation::AddSet);
    let chains = table.chains.iter().map(|chain| Operation::AddChain(chain.clone()));
    let rules = table.chains.iter().flat_map(|chain| {
        chain.rules.iter().map(|rule| Operation::AddRule { chain: chain.name.clone(), rule: rule.clone() })
    });
    [Operation::AddTable].into_iter().chain(sets).chain(chains).chain(rules).collect()
}

/// Whether two operations fit into one message.
fn same_list(one: &Operation, other: &Operation) -> bool {
    match (one, other) {
        (Operation::AddElement(one), Operation::AddElement(other))
        | (Operation::DeleteElement(one), Operation::DeleteElement(other)) => one.set == other.set,
        _ => false,
    }
}

fn write_expressions(out: &mut Writer<'_>, expressions: &[Expression]) {
    for expression in expressions {
        out.nest(list::ELEMENT, |out| expression.write(out));
    }
}

/// The user data in which `nft` keeps a comment.
pub(super) fn comment_data(comment: &str) -> Vec<u8> {
    const COMMENT: u8 = 0;
    let mut text = comment.as_bytes().to_vec();
    text.push(0);
    let mut out = Vec::new();
    type_of::entry(&mut out, COMMENT, &text);
    out
}
