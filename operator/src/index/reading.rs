//! One kind of object as its watch tells of it, and as the answers to our own writes do.
//!
//! The two can overtake each other. Versions put them in order: what is older than what is known is not taken, and an
//! answer about an object that is not known is taken only when the watch has yet to tell of it: else it is gone since.

use std::collections::BTreeMap;

use isp_runtime::readiness::Pending;
use kube::runtime::watcher::Event;
use kube::{Resource, ResourceExt};

use super::News;
use super::fact::{Fact, number};

/// An event in terms of facts.
pub(super) enum Told<K, F> {
    /// A whole reading begins.
    Begin,
    /// Part of it.
    Listed(K, F),
    /// It is complete.
    Whole,
    /// The object is so now.
    Is(K, F),
    /// The object is not there, or no longer of interest, as of a version.
    IsNot(K, Option<u64>),
    /// Nothing of interest.
    Nothing,
}

/// Puts an event in terms of facts. Objects without one are of no interest.
pub(super) fn told<O: Resource, K, F>(
    event: Event<O>,
    key: impl FnOnce(&O) -> K,
    fact: impl FnOnce(O) -> Option<F>,
) -> Told<K, F> {
    let version = |object: &O| object.resource_version().as_deref().and_then(number);
    match event {
        Event::Init => Told::Begin,
        Event::InitDone => Told::Whole,
        Event::InitApply(object) => {
            let key = key(&object);
            fact(object).map_or(Told::Nothing, |fact| Told::Listed(key, fact))
        }
        Event::Apply(object) => {
            let (key, version) = (key(&object), version(&object));
            match fact(object) {
                Some(fact) => Told::Is(key, fact),
                None => Told::IsNot(key, version),
            }
        }
        Event::Delete(object) => Told::IsNot(key(&object), version(&object)),
    }
}

/// How far the reading of one kind has come. The facts themselves are in the cluster.
pub(super) struct Reading<K, F> {
    /// Until it has been read whole once.
    pending: Option<Pending>,
    whole: bool,
    /// What has come of a reading that is not whole yet.
    coming: BTreeMap<K, F>,
    /// The newest version that the watch has told of since. None: nothing yet, and how new the reading was is not known.
    seen: Option<u64>,
}

impl<K: Ord, F: Fact> Reading<K, F> {
    pub(super) fn new(pending: Option<Pending>) -> Self {
        Self { pending, whole: false, coming: BTreeMap::new(), seen: None }
    }

    pub(super) fn is_whole(&self) -> bool {
        self.whole
    }

    /// Folds in what the watch tells.
    pub(super) fn take(&mut self, known: &mut BTreeMap<K, F>, told: Told<K, F>) -> News {
        self.take_among(known, told, |_, _| true)
    }

    /// The same where the facts of several watches are known together: a whole reading replaces those that are `ours`.
    pub(super) fn take_among(
        &mut self,
        known: &mut BTreeMap<K, F>,
        told: Told<K, F>,
        ours: impl Fn(&K, &F) -> bool,
    ) -> News {
        match told {
            Told::Nothing => News::Nothing,
            Told::Begin => {
                self.coming.clear();
                News::Nothing
            }
            Told::Listed(key, fact) => {
                if ours(&key, &fact) {
                    self.coming.insert(key, fact);
                }
                News::Nothing
            }
            Told::Whole => {
                self.seen = None;
                known.retain(|key, fact| !ours(key, fact));
                known.append(&mut self.coming);
                self.whole = true;
                self.pending = None;
                News::Facts
            }
            Told::Is(key, fact) => {
                self.see(fact.version());
                if ours(&key, &fact) { set(known, key, fact) } else { News::Nothing }
            }
            Told::IsNot(key, version) => {
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
