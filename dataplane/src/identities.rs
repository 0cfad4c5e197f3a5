//! The numbers that handles are made of.
//!
//! A port's identity belongs to its ClusterIP, protocol and port. The map `cluster-ips` in the
//! kernel has exactly these pairs, so an agent that starts again finds every identity where its
//! predecessor left it. An identity is given to another port only after [`Identities::free`], which
//! the plane calls when no element with it can be left; and then as late as possible, because the
//! numbers are handed out in a circle.

use std::collections::HashMap;

use thiserror::Error;

use crate::{compile::Frontend, layout::Identity, nft::Handle};

/// Identities in use.
#[derive(Clone, Debug)]
pub struct Identities {
    of: HashMap<Frontend, Identity>,
    taken: Taken,
    next: Identity,
}

/// All identities are in use.
#[derive(Debug, Error, PartialEq, Eq)]
#[error(
    "all {} identities of a family are in use: this node cannot program more ports of Services",
    Identity::LAST.cluster().0
)]
pub struct Exhausted;

impl Default for Identities {
    fn default() -> Self {
        Self { of: HashMap::new(), taken: Taken::default(), next: Identity::FIRST }
    }
}

impl Identities {
    /// Returns the identity of a port, a new one if it has none.
    pub fn obtain(&mut self, frontend: Frontend) -> Result<Identity, Exhausted> {
        if let Some(identity) = self.of.get(&frontend) {
            return Ok(*identity);
        }
        if self.taken.count >= Identity::LAST.cluster().0 {
            return Err(Exhausted);
        }
        while self.taken.contains(self.next) {
            self.next = self.next.next();
        }
        let identity = self.next;
        self.next = identity.next();
        self.taken.insert(identity);
        self.of.insert(frontend, identity);
        Ok(identity)
    }

    /// Returns the identity of a port.
    pub fn get(&self, frontend: Frontend) -> Option<Identity> {
        self.of.get(&frontend).copied()
    }

    /// Tells whether the identity is not free.
    pub fn is_taken(&self, identity: Identity) -> bool {
        self.taken.contains(identity)
    }

    /// Takes over an identity that the kernel has. A frontend that is known already keeps its own.
    pub fn adopt(&mut self, frontend: Frontend, identity: Identity) {
        if self.taken.insert(identity) {
            self.of.entry(frontend).or_insert(identity);
        }
        self.start_after(identity);
    }

    /// Keeps an identity from being handed out.
    pub fn reserve(&mut self, identity: Identity) {
        self.taken.insert(identity);
        self.start_after(identity);
    }

    /// Takes the identity from its port. It stays reserved until it is freed.
    pub fn retire(&mut self, frontend: Frontend) -> Option<Identity> {
        self.of.remove(&frontend)
    }

    /// Frees a retired identity. One that a port has stays.
    pub fn free(&mut self, identity: Identity) {
        self.taken.remove(identity);
    }

    /// Takes identities from all ports that are not kept, and from those that have no port. They
    /// stay reserved until they are freed.
    pub fn abandon(&mut self, keep: impl Fn(Frontend) -> bool) -> Vec<Identity> {
        self.of.retain(|frontend, _| keep(*frontend));
        let mut abandoned = self.taken.clone();
        for identity in self.of.values() {
            abandoned.remove(*identity);
        }
        abandoned.all()
    }

    fn start_after(&mut self, identity: Identity) {
        if identity >= self.next {
            self.next = identity.next();
        }
    }
}

/// A set of identities, a bit for each.
#[derive(Clone, Debug, Default)]
struct Taken {
    words: Vec<u64>,
    count: u32,
}

impl Taken {
    /// The word and the bit of an identity.
    fn place(identity: Identity) -> (usize, u64) {
        let number = identity.cluster().0;
        (number as usize / 64, 1 << (number % 64))
    }

    fn contains(&self, identity: Identity) -> bool {
        let (word, bit) = Self::place(identity);
        self.words.get(word).is_some_and(|word| word & bit != 0)
    }

    /// Adds an identity; tells whether it was not there before.
    fn insert(&mut self, identity: Identity) -> bool {
        let (word, bit) = Self::place(identity);
        if self.words.len() <= word {
            self.words.resize(word + 1, 0);
        }
        let is_new = self.words[word] & bit == 0;
        self.words[word] |= bit;
        self.count += u32::from(is_new);
        is_new
    }

    fn remove(&mut self, identity: Identity) {
        if self.contains(identity) {
            let (word, bit) = Self::place(identity);
            self.words[word] &= !bit;
            self.count -= 1;
        }
    }

    fn all(&self) -> Vec<Identity> {
        let numbers = (0..).zip(&self.words).flat_map(|(place, word)| {
            (0..64).filter(move |bit| word >> bit & 1 != 0).map(move |bit| place * 64 + bit)
        });
        numbers.filter_map(|number| Identity::of(Handle(number))).collect()
    }
}

#[cfg(test)]
mod tests;
