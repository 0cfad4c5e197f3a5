//! Watch events folded into the objects that exist. A list in progress replaces what is known
//! only when it is complete.

use std::collections::BTreeMap;

use kube::runtime::watcher::Event;
use kube::{Resource, ResourceExt};

/// A change of what exists, as one step.
#[derive(Debug, PartialEq, Eq)]
pub enum Change<T> {
    /// A list is complete: these exist and nothing else.
    Listed(Vec<T>),
    /// This was created or updated.
    Applied(T),
    /// This was deleted.
    Deleted(T),
}

/// Turns the events of one watch into changes.
#[derive(Debug)]
pub struct Listing<T> {
    items: Vec<T>,
    complete: bool,
}

impl<T> Default for Listing<T> {
    fn default() -> Self {
        Self { items: Vec::new(), complete: false }
    }
}

impl<T> Listing<T> {
    /// Whether a list was completed once. Before that, an absent object may still exist.
    pub fn is_complete(&self) -> bool {
        self.complete
    }

    /// Folds in an event. `item` keeps what the caller needs of an object.
    pub fn fold<O>(&mut self, event: Event<O>, item: impl FnOnce(O) -> T) -> Option<Change<T>> {
        match event {
            Event::Init => {
                self.items.clear();
                None
            }
            Event::InitApply(object) => {
                self.items.push(item(object));
                None
            }
            Event::InitDone => {
                self.complete = true;
                Some(Change::Listed(std::mem::take(&mut self.items)))
            }
            Event::Apply(object) => Some(Change::Applied(item(object))),
            Event::Delete(object) => Some(Change::Deleted(item(object))),
        }
    }
}

/// The objects of one watch by name.
#[derive(Debug)]
pub struct Collected<V> {
    items: BTreeMap<String, V>,
    listing: Listing<(String, V)>,
}

impl<V> Default for Collected<V> {
    fn default() -> Self {
        Self { items: BTreeMap::new(), listing: Listing::default() }
    }
}

impl<V> Collected<V> {
    /// Folds in an event and returns whether anything changed. `keep` reduces an object to what
    /// is needed of it.
    pub fn fold<K: Resource>(&mut self, event: Event<K>, keep: impl FnOnce(K) -> V) -> bool {
        match self.listing.fold(event, |object| (object.name_any(), keep(object))) {
            None => return false,
            Some(Change::Listed(items)) => self.items = items.into_iter().collect(),
            Some(Change::Applied((name, value))) => drop(self.items.insert(name, value)),
            Some(Change::Deleted((name, _))) => drop(self.items.remove(&name)),
        }
        true
    }

    /// The objects, once a list was complete.
    pub fn complete(&self) -> Option<&BTreeMap<String, V>> {
        self.listing.is_complete().then_some(&self.items)
    }
}

#[cfg(test)]
mod tests {
    use k8s_openapi::api::core::v1::Node;
    use kube::core::ObjectMeta;

    use super::*;

    fn node(name: &str) -> Node {
        Node {
            metadata: ObjectMeta { name: Some(name.to_owned()), ..ObjectMeta::default() },
            ..Node::default()
        }
    }

    fn names(nodes: &Collected<Node>) -> Option<Vec<&str>> {
        Some(nodes.complete()?.keys().map(String::as_str).collect())
    }

    #[test]
    fn nothing_is_known_before_a_list_is_complete_and_the_next_list_replaces_it_as_a_whole() {
        let mut nodes = Collected::default();
        let mut fold = |event| (nodes.fold(event, |node| node), names(&nodes).map(|names| names.join(" ")));
        let known = |names: &str| Some(names.to_owned());
        assert_eq!(fold(Event::Init), (false, None));
        assert_eq!(fold(Event::InitApply(node("a"))), (false, None));
        assert_eq!(fold(Event::InitDone), (true, known("a")));
        assert_eq!(fold(Event::Apply(node("b"))), (true, known("a b")));
        assert_eq!(fold(Event::Init), (false, known("a b")));
        assert_eq!(fold(Event::InitApply(node("c"))), (false, known("a b")));
        // The list broke off and starts again.
        assert_eq!(fold(Event::Init), (false, known("a b")));
        assert_eq!(fold(Event::InitApply(node("d"))), (false, known("a b")));
        assert_eq!(fold(Event::InitDone), (true, known("d")));
        assert_eq!(fold(Event::Delete(node("d"))), (true, known("")));
    }
}
