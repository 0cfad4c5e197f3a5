use isp_dataplane::nft::{Element, Family, Table};
use isp_kernel::{Found, Kernel};

use crate::fixture::{NAME, elements, table, text};
use crate::inside::inside;
use crate::nft::{feed, nft};
use crate::raw;

/// The elements of a table that must be as wanted.
pub(crate) fn found(kernel: &mut Kernel, table: &Table) -> Vec<Element> {
    match kernel.read(table).unwrap() {
        Found::Present { difference: None, elements } => sorted(elements),
        other => panic!("{other:?}"),
    }
}

pub(crate) fn sorted(mut elements: Vec<Element>) -> Vec<Element> {
    elements.sort();
    elements
}

#[test]
fn a_table_is_byte_for_byte_what_nft_makes_of_the_same_text() {
    inside("loading::a_table_is_byte_for_byte_what_nft_makes_of_the_same_text", || {
        for family in Family::ALL {
            let table = table(family);
            feed(&text(family)).unwrap();
            let theirs = raw::report(&table);
            nft(&["delete", "table", family.keyword(), NAME]);
            Kernel::open().unwrap().load(&[(&table, &[])]).unwrap();
            let ours = raw::report(&table);
            assert_eq!(ours.len(), theirs.len());
            for (ours, theirs) in ours.iter().zip(&theirs) {
                assert_eq!(ours, theirs);
            }
        }
    });
}

#[test]
fn a_loaded_table_is_read_as_wanted_with_the_same_elements() {
    inside("loading::a_loaded_table_is_read_as_wanted_with_the_same_elements", || {
        let mut kernel = Kernel::open().unwrap();
        for family in Family::ALL {
            let (table, elements) = (table(family), elements(family));
            assert_eq!(kernel.read(&table).unwrap(), Found::Absent);
            kernel.load(&[(&table, &elements)]).unwrap();
            assert_eq!(found(&mut kernel, &table), sorted(elements));
        }
    });
}

#[test]
fn nft_lists_a_table_and_loads_its_own_listing() {
    inside("loading::nft_lists_a_table_and_loads_its_own_listing", || {
        let mut kernel = Kernel::open().unwrap();
        for family in Family::ALL {
            let (table, elements) = (table(family), elements(family));
            kernel.load(&[(&table, &elements)]).unwrap();
            let listing = nft(&["list", "table", family.keyword(), NAME]);
            nft(&["delete", "table", family.keyword(), NAME]);
            feed(&listing).unwrap();
            assert_eq!(nft(&["list", "table", family.keyword(), NAME]), listing);
            assert_eq!(found(&mut kernel, &table), sorted(elements));
        }
    });
}
