//! One kind of object as its watch tells of it, and as the answers to our own writes do.
//!
//! The two can overtake each other. Versions put them in order: what is older than what is known is not taken, and an
//! answer about an object that is not known is taken only when the watch has yet to tell of it: else it is gone since.

use std::collections::BTreeMap;

use isp_client::{Change, Listing};
use isp_runtime::readiness::Pending;
use kube::runtime::watcher::Event;
use kube::{Resource, ResourceExt};

use super::News;
use super::fact::{Fact, number};

/// An object as a watch reports it: its key, its version, and its fact unless it is of no interest.
type Item<K, F> = (K, Option<u64>, Option<F>);

/// How far the reading of one kind has come. The facts themselves are in the cluster.
pub(super) struct Reading<K, F> {
    /// Until it has been read whole once.
    pending: Option<Pending>,
    listing: Listing<Item<K, F>>,
    /// The newest version that the watch has told of since. None: nothing yet, and how new the reading was is not known.
    seen: Option<u64>,
}

impl<K: Ord, F: Fact> Reading<K, F> {
    pub(super) fn new(pending: Option<Pending>) -> Self {
        Self { pending, listing: Listing::default(), seen: None }
    }

    pub(super) fn is_whole(&self) -> bool {
        self.listing.is_complete()
    }

    /// Folds in an event. Objects without a fact are of no interest.
    pub(super) fn take<O: Resource>(
        &mut self,
        known: &mut BTreeMap<K, F>,
        event: Event<O>,
        key: impl FnOnce(&O) -> K,
        fact: impl FnOnce(O) -> Option<F>,
    ) -> News {
        self.take_among(known, event, key, fact, |_, _| true)
    }

    /// The same where the facts of several watches are known together: a whole reading replaces those that are `ours`.
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

    /// Folds in what a write was answered with; `gone` if the object went with that write.
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

/// Removes what is known under a key if it is the one that is meant.
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
