//! Which index an endpoint has among the endpoints of its set.
//!
//! Endpoints that stay keep their index, so a changed endpoint costs one element, not all of them.

use std::collections::HashSet;

use crate::model::Target;

/// Places the wanted endpoints. Endpoints that stay keep their index if it is still in range; the
/// others fill the gaps in the order given.
pub fn place(before: &[Target], wanted: &[Target]) -> Vec<Target> {
    if before == wanted {
        return before.to_vec();
    }
    let names: HashSet<Target> = wanted.iter().copied().collect();
    let mut kept = HashSet::with_capacity(wanted.len());
    let mut slots: Vec<Option<Target>> = vec![None; wanted.len()];
    for (slot, target) in slots.iter_mut().zip(before) {
        if names.contains(target) && kept.insert(*target) {
            *slot = Some(*target);
        }
    }
    let mut rest = wanted.iter().copied().filter(|target| !kept.contains(target));
    slots.into_iter().filter_map(|slot| slot.or_else(|| rest.next())).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn target(last: u8) -> Target {
        Target { address: [10, 0, 0, last].into(), port: 80 }
    }

    fn targets(last: &[u8]) -> Vec<Target> {
        last.iter().copied().map(target).collect()
    }

    #[test]
    fn a_replaced_endpoint_takes_the_slot_of_the_old_one() {
        assert_eq!(place(&targets(&[1, 2, 3]), &targets(&[1, 3, 9])), targets(&[1, 9, 3]));
    }

    #[test]
    fn a_removed_endpoint_is_followed_by_the_last_one() {
        assert_eq!(place(&targets(&[1, 2, 3, 4]), &targets(&[1, 3, 4])), targets(&[1, 4, 3]));
    }

    #[test]
    fn an_added_endpoint_comes_last() {
        assert_eq!(place(&targets(&[4, 2]), &targets(&[1, 2, 4])), targets(&[4, 2, 1]));
    }

    proptest! {
        #[test]
        fn every_wanted_endpoint_has_one_slot_and_few_move(
            before in prop::collection::hash_set(0u8..40, 0..20),
            wanted in prop::collection::btree_set(0u8..40, 0..20),
        ) {
            let before = targets(&before.into_iter().collect::<Vec<_>>());
            let wanted = targets(&wanted.into_iter().collect::<Vec<_>>());
            let mut placed = place(&before, &wanted);
            let moved = before.iter().enumerate().take(wanted.len()).filter(|(index, target)| {
                wanted.contains(target) && placed[*index] != **target
            }).count();
            prop_assert_eq!(moved, 0);
            placed.sort_unstable();
            prop_assert_eq!(placed, wanted);
        }
    }
}
