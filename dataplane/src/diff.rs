//! The difference between two collections of elements, as steps of batches.
//!
//! Each lookup of a packet reads the generation of the ruleset for itself. A packet that has read a
//! size or a destination just before a commit may look for an endpoint that the commit deletes.
//! Therefore elements that only such packets can still find are deleted in a later batch.

use std::collections::HashMap;

use crate::{
    layout,
    nft::{Element, Key, Name, Operation},
};

/// The steps of a change.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Changes {
    /// One atomic batch: deletions first, because a replaced element has the same key.
    pub now: Vec<Operation>,
    /// Elements that no new packet finds. They are deleted in a batch after this one.
    pub later: Vec<Element>,
}

/// Returns the steps from the elements that are there to the wanted ones. Each of the two has a key
/// of a set at most once.
pub fn diff(have: Vec<Element>, want: Vec<Element>) -> Changes {
    let places: HashMap<(&Name, &Key), usize> =
        have.iter().enumerate().map(|(place, each)| ((&each.set, &each.key), place)).collect();
    let mut fate = vec![Fate::Gone; have.len()];
    let mut wanted = vec![true; want.len()];
    for (element, wanted) in want.iter().zip(&mut wanted) {
        if let Some(place) = places.get(&(&element.set, &element.key)) {
            let same = have[*place] == *element;
            fate[*place] = if same { Fate::Stays } else { Fate::Replaced };
            *wanted = !same;
        }
    }
    let mut changes = Changes::default();
    for (element, fate) in have.into_iter().zip(fate) {
        match fate {
            Fate::Stays => {}
            Fate::Gone if lingers(&element) => changes.later.push(element),
            Fate::Gone | Fate::Replaced => changes.now.push(Operation::DeleteElement(element)),
        }
    }
    let additions = want.into_iter().zip(wanted).filter(|(_, wanted)| *wanted);
    changes.now.extend(additions.map(|(element, _)| Operation::AddElement(element)));
    changes
}

/// The fate of an element that is there.
#[derive(Clone, Copy)]
enum Fate {
    Stays,
    Replaced,
    Gone,
}

/// Whether a packet in flight may still look for the element after what led to it is gone.
fn lingers(element: &Element) -> bool {
    element.set == layout::ENDPOINTS || element.set == layout::HAIRPIN
}

#[cfg(test)]
mod tests;
