//! The facts of one kind, from its watch and from the responses to our own writes.
//!
//! The two can overtake each other, so resource versions order them. A version older than the known
//! one is ignored. A response about an unknown object is folded in only if it is newer than
//! everything the watch has reported; otherwise the object has been deleted since.

use std::collections::BTreeMap;

use isp_client::{Change, Listing};
use isp_runtime::readiness::Pending;
use kube::runtime::watcher::Event;
use kube::{Resource, ResourceExt};

use super::News;
use super::fact::{Fact, number};

/// An object from a watch: its key, its version, and its fact unless the object is ignored.
type Item<K, F> = (K, Option<u64>, Option<F>);

/// The progress of one watch. The facts themselves are in the cluster.
pub(super) struct Reading<K, F> {
    /// Held until the first list is complete.
    pending: Option<Pending>,
    listing: Listing<Item<K, F>>,
    /// The newest version that the watch has reported since the last list, or None if nothing came.
    /// The version of the list itself is not known.
    seen: Option<u64>,
}

impl<K: Ord, F: Fact> Reading<K, F> {
    pub(super) fn new(pending: Option<Pending>) -> Self {
        Self { pending, listing: Listing::default(), seen: None }
    }

    pub(super) fn is_whole(&self) -> bool {
        self.listing.is_complete()
    }

    /// Folds in an event. Objects without a fact are ignored.
    pub(super) fn take<O: Resource>(
        &mut self,
        known: &mut BTreeMap<K, F>,
        event: Event<O>,
        key: impl FnOnce(&O) -> K,
        fact: impl FnOnce(O) -> Option<F>,
    ) -> News {
        self.take_among(known, event, key, fact, |_, _| true)
    }

    /// Like [`Self::take`], for a map that several watches share: a list replaces only the facts
    /// for which `ours` is true.
    pub(super) fn take_among<O: Resource>(
        &mut self,
        known: &mut BTreeMap<K, F>,
        event: Event<O>,
        key: impl FnOnce(&O) -> K,
        fact: impl FnOnce(O) -> Option<F>,
        ours: impl Fn(&K, &F) -> bool,
    ) -> News {
        let item = |object: O| {
            let version = object.resource_version().as_deref().and_then(number);
            (key(&object), version, fact(object))
        };
        match self.listing.fold(event, item) {
            None => News::Nothing,
            Some(Change::Listed(items)) => {
                (self.seen, self.pending) = (None, None);
                known.retain(|key, fact| !ours(key, fact));
                let items = items.into_iter().filter_map(|(key, _, fact)| Some((key, fact?)));
                known.extend(items.filter(|(key, fact)| ours(key, fact)));
                News::Facts
            }
            Some(Change::Applied((key, version, Some(fact)))) => {
                self.see(version);
                if ours(&key, &fact) { set(known, key, fact) } else { News::Nothing }
            }
            Some(Change::Applied((key, version, None)) | Change::Deleted((key, version, _))) => {
                self.see(version);
                let newer = |fact: &F| fact.version().zip(version).is_some_and(|(known, told)| known > told);
                remove(known, &key, |fact| ours(&key, fact) && !newer(fact))
            }
        }
    }

    /// Folds in the response to a write; `gone` if that write deleted the object.
    pub(super) fn take_answer(&mut self, known: &mut BTreeMap<K, F>, key: K, fact: F, gone: bool) -> News {
        let to_come = fact.version().zip(self.seen).is_some_and(|(version, seen)| version > seen);
        if !known.contains_key(&key) && !to_come {
            return News::Nothing;
        }
        if gone {
            return remove(known, &key, |known| known.version() <= fact.version());
        }
        set(known, key, fact)
    }

    fn see(&mut self, version: Option<u64>) {
        self.seen = self.seen.max(version);
    }
}

fn set<K: Ord, F: Fact>(known: &mut BTreeMap<K, F>, key: K, fact: F) -> News {
    let Some(before) = known.get_mut(&key) else {
        known.insert(key, fact);
        return News::Facts;
    };
    if before.version().zip(fact.version()).is_some_and(|(known, told)| known > told) {
        return News::Nothing;
    }
    let news = fact.news_after(before);
    *before = fact;
    news
}

/// Removes the fact under a key if `is_meant` accepts it.
pub(super) fn remove<K: Ord, F>(
    known: &mut BTreeMap<K, F>,
    key: &K,
    is_meant: impl FnOnce(&F) -> bool,
) -> News {
    if !known.get(key).is_some_and(is_meant) {
        return News::Nothing;
    }
    known.remove(key);
    News::Facts
}
