//! A table together with its elements: the kernel's side as a value.
//!
//! It takes the operations that the kernel takes and refuses what the kernel refuses, so tests of
//! histories need no kernel, and [`crate::trace`] walks the values that are sent.

use std::collections::HashMap;

use thiserror::Error;

use crate::nft::{Chain, Data, Element, Key, Name, Operation, Table, Value};

/// A table and its elements.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Ruleset {
    table: Table,
    contents: HashMap<Name, Contents>,
}

/// The elements of one set.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
struct Contents {
    exact: HashMap<Key, Data>,
    ranges: Vec<Element>,
}

/// An operation that the kernel would refuse.
#[derive(Debug, Error, PartialEq, Eq)]
pub enum Refused {
    /// The set is not in the table.
    #[error("there is no set {0}: add the set first")]
    NoSet(Name),
    /// The chain is not in the table.
    #[error("there is no chain {0}: add the chain first")]
    NoChain(Name),
    /// The name is in use.
    #[error("{0} exists already")]
    Exists(Name),
    /// A chain, rule or element still refers to it.
    #[error("{0} is still referred to: delete the rule or element first")]
    Busy(Name),
    /// The element exists with other data, or overlaps another.
    #[error("an element of {} is in the way: delete {:?} first", .0.set, .0.key)]
    InTheWay(Element),
    /// The element to delete is not there.
    #[error("{} has no element {:?}", .0.set, .0.key)]
    NoElement(Element),
    /// The operation concerns the whole table.
    #[error("a ruleset is one table: it cannot be added or deleted")]
    WholeTable,
}

impl Ruleset {
    /// A table with elements.
    pub fn new(table: Table, elements: impl IntoIterator<Item = Element>) -> Result<Self, Refused> {
        let mut ruleset = Self { table, contents: HashMap::new() };
        for element in elements {
            ruleset.add(element)?;
        }
        Ok(ruleset)
    }

    /// The table.
    pub fn table(&self) -> &Table {
        &self.table
    }

    /// All elements, sorted.
    pub fn elements(&self) -> Vec<Element> {
        let mut all: Vec<Element> = Vec::new();
        for (set, contents) in &self.contents {
            all.extend(contents.exact.iter().map(|(key, data)| Element {
                set: set.clone(),
                key: key.clone(),
                last: None,
                data: data.clone(),
            }));
            all.extend(contents.ranges.iter().cloned());
        }
        all.sort_unstable();
        all
    }

    /// Looks a key up. The data of a set's element is [`Data::None`].
    pub fn find(&self, set: &Name, key: &[Value]) -> Option<&Data> {
        let contents = self.contents.get(set)?;
        contents.exact.get(key).or_else(|| {
            let holds = |range: &&Element| {
                range.last.iter().all(|last| {
                    range
                        .key
                        .iter()
                        .zip(last)
                        .zip(key)
                        .all(|((first, last), value)| first <= value && value <= last)
                })
            };
            contents.ranges.iter().find(holds).map(|range| &range.data)
        })
    }

    /// Carries out a batch; a refused batch changes nothing.
    pub fn commit(&mut self, batch: &[Operation]) -> Result<(), Refused> {
        let mut changed = self.clone();
        for operation in batch {
            changed.apply(operation)?;
        }
        *self = changed;
        Ok(())
    }

    /// Carries out one operation. A refused one changes nothing.
    pub fn apply(&mut self, operation: &Operation) -> Result<(), Refused> {
        match operation {
            Operation::AddTable | Operation::DeleteTable => return Err(Refused::WholeTable),
            Operation::AddSet(set) => {
                if self.table.set(&set.name).is_some() {
                    return Err(Refused::Exists(set.name.clone()));
                }
                self.table.sets.push(set.clone());
            }
            Operation::DeleteSet(name) => {
                if self.is_referred_to(name) {
                    return Err(Refused::Busy(name.clone()));
                }
                self.table.set(name).ok_or_else(|| Refused::NoSet(name.clone()))?;
                self.table.sets.retain(|set| set.name != *name);
                self.contents.remove(name);
            }
            Operation::AddChain(chain) => {
                if self.table.chain(&chain.name).is_some() {
                    return Err(Refused::Exists(chain.name.clone()));
                }
                self.table.chains.push(Chain { rules: Vec::new(), ..chain.clone() });
            }
            Operation::DeleteChain(name) => {
                if self.is_referred_to(name) {
                    return Err(Refused::Busy(name.clone()));
                }
                self.chain(name)?;
                self.table.chains.retain(|chain| chain.name != *name);
            }
            Operation::FlushChain(name) => self.chain(name)?.rules.clear(),
            Operation::AddRule { chain, rule } => self.chain(chain)?.rules.push(rule.clone()),
            Operation::AddElement(element) => self.add(element.clone())?,
            Operation::DeleteElement(element) => self.delete(element)?,
        }
        Ok(())
    }

    fn chain(&mut self, name: &Name) -> Result<&mut Chain, Refused> {
        let found = self.table.chains.iter_mut().find(|chain| chain.name == *name);
        found.ok_or_else(|| Refused::NoChain(name.clone()))
    }

    fn add(&mut self, element: Element) -> Result<(), Refused> {
        if self.table.set(&element.set).is_none() {
            return Err(Refused::NoSet(element.set));
        }
        let contents = self.contents.entry(element.set.clone()).or_default();
        if let Some(last) = &element.last {
            let overlaps = |other: &&Element| {
                other.last.as_ref().is_some_and(|other_last| {
                    let fields = element.key.iter().zip(last).zip(other.key.iter().zip(other_last));
                    fields.into_iter().all(|((first, last), (other_first, other_last))| {
                        first <= other_last && other_first <= last
                    })
                })
            };
            match contents.ranges.iter().find(overlaps) {
                Some(other) if *other == element => {}
                Some(other) => return Err(Refused::InTheWay(other.clone())),
                None => contents.ranges.push(element),
            }
            return Ok(());
        }
        match contents.exact.get(&element.key) {
            Some(data) if *data != element.data => {
                Err(Refused::InTheWay(Element { data: data.clone(), ..element }))
            }
            _ => {
                contents.exact.insert(element.key, element.data);
                Ok(())
            }
        }
    }

    fn delete(&mut self, element: &Element) -> Result<(), Refused> {
        let contents = self.contents.entry(element.set.clone()).or_default();
        let found = if element.last.is_some() {
            let place =
                contents.ranges.iter().position(|each| each.key == element.key && each.last == element.last);
            place.map(|place| contents.ranges.swap_remove(place)).is_some()
        } else {
            contents.exact.remove(&element.key).is_some()
        };
        if found { Ok(()) } else { Err(Refused::NoElement(element.clone())) }
    }

    fn is_referred_to(&self, name: &Name) -> bool {
        let rules = self.table.chains.iter().flat_map(|chain| &chain.rules);
        rules.flat_map(|rule| &rule.statements).any(|statement| statement.refers_to(name))
            || self.contents.values().flat_map(|contents| contents.exact.values()).any(|data| match data {
                Data::Verdict(verdict) => verdict.chain() == Some(name),
                Data::None | Data::Values(_) => false,
            })
    }
}
