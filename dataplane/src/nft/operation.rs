use super::{Chain, Element, Name, Rule, Set};

/// One step of a batch. The kernel commits a batch as a whole or not at all.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Operation {
    /// Creates the table.
    AddTable,
    /// Deletes the table with everything in it.
    DeleteTable,
    /// Creates a set or map.
    AddSet(Set),
    /// Deletes a set or map with its elements.
    DeleteSet(Name),
    /// Creates a chain without rules; the rules follow as [`Operation::AddRule`].
    AddChain(Chain),
    /// Deletes a chain.
    DeleteChain(Name),
    /// Deletes the rules of a chain.
    FlushChain(Name),
    /// Appends a rule to a chain.
    AddRule {
        /// The chain.
        chain: Name,
        /// The rule.
        rule: Rule,
    },
    /// Adds an element. It must not exist with other data.
    AddElement(Element),
    /// Deletes an element. Its set and its key, or range of keys, name it; the data does not count.
    DeleteElement(Element),
}
