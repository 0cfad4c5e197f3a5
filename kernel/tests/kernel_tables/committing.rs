//! Changes, one atomic batch each, and the ways in which they fail.

use std::slice::from_ref;

use isp_dataplane::netlink::Batch;
use isp_dataplane::nft::{Data, Family, Name, Operation, Set, Table, Value};
use isp_kernel::{CommitError, Found, Kernel};

use crate::fixture::{self, ENDPOINTS, address, endpoint, frontend, handle, table};
use crate::inside::{inside, inside_user_namespace};
use crate::loading::{found, sorted};
use crate::nft::nft;

fn loaded() -> (Kernel, Table) {
    let mut kernel = Kernel::open().unwrap();
    let table = table(Family::Ip);
    kernel.load(&[(&table, &fixture::elements(Family::Ip))]).unwrap();
    (kernel, table)
}

fn commit(kernel: &mut Kernel, table: &Table, operations: &[Operation]) -> Result<(), CommitError> {
    let mut batch = Batch::new();
    batch.apply(&kernel.id(table), operations);
    kernel.commit(&batch)
}

#[test]
fn an_endpoint_is_replaced_by_one_batch() {
    inside("committing::an_endpoint_is_replaced_by_one_batch", || {
        let (mut kernel, table) = loaded();
        let mut expected = fixture::elements(Family::Ip);
        let old = endpoint(handle(2, 0xb), 1, address(Family::Ip, 102), 8081);
        let new = endpoint(handle(2, 0xb), 1, address(Family::Ip, 103), 8082);
        commit(
            &mut kernel,
            &table,
            &[Operation::DeleteElement(old.clone()), Operation::AddElement(new.clone())],
        )
        .unwrap();
        expected.retain(|element| *element != old);
        expected.push(new);
        assert_eq!(found(&mut kernel, &table), sorted(expected));
    });
}

#[test]
fn a_refused_batch_changes_nothing_and_says_which_element_was_refused() {
    inside("committing::a_refused_batch_changes_nothing_and_says_which_element_was_refused", || {
        let (mut kernel, table) = loaded();
        let before = found(&mut kernel, &table);
        let added = frontend(Family::Ip, 77, handle(1, 0xc));
        let other_data = frontend(Family::Ip, 1, handle(1, 0xc));
        let operations = [Operation::AddElement(added), Operation::AddElement(other_data)];
        let error = commit(&mut kernel, &table, &operations).unwrap_err().to_string();
        assert!(
            error.contains("add elements of set frontends of table ip isp-test, key 10.96.0.1 . tcp . 80: "),
            "{error}"
        );
        assert_eq!(found(&mut kernel, &table), before);

        let missing = endpoint(handle(9, 9), 5, address(Family::Ip, 1), 1);
        let error = commit(&mut kernel, &table, &[Operation::DeleteElement(missing)]).unwrap_err();
        assert!(error.to_string().contains("delete elements of set endpoints"), "{error}");
        assert!(error.to_string().contains("key 90:9 . 5: No such file or directory"), "{error}");
        assert_eq!(found(&mut kernel, &table), before);
    });
}

#[test]
fn elements_that_have_ended_do_not_keep_the_others() {
    inside("committing::elements_that_have_ended_do_not_keep_the_others", || {
        let (mut kernel, table) = loaded();
        let before = found(&mut kernel, &table);
        let there = |number: u8| frontend(Family::Ip, number, handle(1, 0xc));
        let more: Vec<_> = (100..107).map(there).collect();
        let added: Vec<_> = more.iter().cloned().map(Operation::AddElement).collect();
        commit(&mut kernel, &table, &added).unwrap();
        for ended in [&more[..1], &more[3..5], &more[6..]] {
            let ended: Vec<_> = ended.iter().cloned().map(Operation::DeleteElement).collect();
            commit(&mut kernel, &table, &ended).unwrap();
        }
        kernel.delete_existing(&table, &more).unwrap();
        assert_eq!(found(&mut kernel, &table), before);
        kernel.delete_existing(&table, &more).unwrap();
        kernel.delete_existing(&table, &[]).unwrap();
        assert_eq!(found(&mut kernel, &table), before);
    });
}

#[test]
fn an_element_that_exists_already_with_the_same_data_is_no_error() {
    inside("committing::an_element_that_exists_already_with_the_same_data_is_no_error", || {
        let (mut kernel, table) = loaded();
        let before = found(&mut kernel, &table);
        for _ in 0..3 {
            let again = Operation::AddElement(frontend(Family::Ip, 1, handle(1, 0xa)));
            commit(&mut kernel, &table, &[again]).unwrap();
        }
        assert_eq!(found(&mut kernel, &table), before);
    });
}

#[test]
fn a_full_set_is_named() {
    inside("committing::a_full_set_is_named", || {
        let mut kernel = Kernel::open().unwrap();
        let mut table = table(Family::Ip);
        let endpoints = table.sets.iter_mut().find(|set| set.name == ENDPOINTS).unwrap();
        *endpoints = Set { size: Some(3), ..endpoints.clone() };
        kernel.load(&[(&table, &fixture::elements(Family::Ip))]).unwrap();
        let one_more = endpoint(handle(1, 0xd), 0, address(Family::Ip, 1), 1);
        let error = commit(&mut kernel, &table, &[Operation::AddElement(one_more)]).unwrap_err();
        assert!(error.to_string().ends_with("(the set is full)"), "{error}");
        assert!(error.to_string().contains("set endpoints"), "{error}");
    });
}

#[test]
fn commits_of_other_programs_to_their_own_tables_do_not_disturb() {
    inside("committing::commits_of_other_programs_to_their_own_tables_do_not_disturb", || {
        let (mut kernel, table) = loaded();
        for port in 1..20 {
            nft(&["add", "table", "ip", "other"]);
            nft(&["delete", "table", "ip", "other"]);
            let added = endpoint(handle(1, 0xe), port, address(Family::Ip, 1), 1);
            commit(&mut kernel, &table, &[Operation::AddElement(added)]).unwrap();
        }
        assert_eq!(found(&mut kernel, &table).len(), fixture::elements(Family::Ip).len() + 19);
    });
}

#[test]
fn a_batch_decided_before_another_program_changed_the_table_is_not_committed() {
    inside("committing::a_batch_decided_before_another_program_changed_the_table_is_not_committed", || {
        let (mut kernel, table) = loaded();
        nft(&["flush", "map", "ip", "isp-test", "endpoints"]);
        let added = Operation::AddElement(endpoint(handle(1, 0xe), 0, address(Family::Ip, 1), 1));
        let error = commit(&mut kernel, &table, from_ref(&added)).unwrap_err();
        assert!(matches!(error, CommitError::Overtaken(_)), "{error}");
        assert!(error.to_string().contains("(nft) changed table ip isp-test: deleted elements"), "{error}");
        // The table was read again, so this is decided on its current state.
        found(&mut kernel, &table);
        commit(&mut kernel, &table, &[added]).unwrap();
    });
}

#[test]
fn a_table_that_is_deleted_makes_the_batch_fail_until_it_is_loaded_again() {
    inside("committing::a_table_that_is_deleted_makes_the_batch_fail_until_it_is_loaded_again", || {
        let (mut kernel, table) = loaded();
        nft(&["flush", "ruleset"]);
        let added = Operation::AddElement(endpoint(handle(1, 0xe), 0, address(Family::Ip, 1), 1));
        let error = commit(&mut kernel, &table, from_ref(&added)).unwrap_err();
        assert!(error.to_string().contains("changed table ip isp-test"), "{error}");
        // It stands until the table is read or loaded.
        let again = commit(&mut kernel, &table, from_ref(&added)).unwrap_err();
        assert_eq!(again.to_string(), error.to_string());
        assert_eq!(kernel.read(&table).unwrap(), Found::Absent);
        let error = commit(&mut kernel, &table, from_ref(&added)).unwrap_err();
        assert!(error.to_string().contains("No such file or directory"), "{error}");
        kernel.load(&[(&table, &[])]).unwrap();
        commit(&mut kernel, &table, &[added]).unwrap();
    });
}

#[test]
fn chains_and_rules_come_and_go_with_the_counts_that_occur() {
    inside("committing::chains_and_rules_come_and_go_with_the_counts_that_occur", || {
        let (mut kernel, table) = loaded();
        let mut larger = table.clone();
        let model = table.chains.iter().find(|chain| chain.name.as_str() == "choose-2").unwrap();
        let mut chain = model.clone();
        chain.name = Name::constant("choose-3");
        larger.chains.push(chain.clone());
        let mut operations = vec![Operation::AddChain(chain.clone())];
        operations.extend(
            chain
                .rules
                .iter()
                .map(|rule| Operation::AddRule { chain: chain.name.clone(), rule: rule.clone() }),
        );
        commit(&mut kernel, &table, &operations).unwrap();
        found(&mut kernel, &larger);
        let back = [Operation::FlushChain(chain.name.clone()), Operation::DeleteChain(chain.name)];
        commit(&mut kernel, &larger, &back).unwrap();
        found(&mut kernel, &table);
    });
}

/// Elements for more than the largest send buffer that `net.core.wmem_max` usually allows.
const LARGE: u32 = 260_000;

pub(crate) fn many(count: u32) -> Vec<isp_dataplane::nft::Element> {
    (0..count)
        .map(|index| {
            let key = vec![Value::Handle(handle(2, index / 2)), Value::Index(index % 2)];
            let data = Data::Values(vec![address(Family::Ip, 1), Value::Port(8080)]);
            fixture::element(ENDPOINTS, key, data)
        })
        .collect()
}

#[test]
fn a_hundred_thousand_elements_are_one_transaction_and_read_back_as_sent() {
    inside("committing::a_hundred_thousand_elements_are_one_transaction_and_read_back_as_sent", || {
        let mut kernel = Kernel::open().unwrap();
        let (table, elements) = (table(Family::Ip), many(100_000));
        kernel.load(&[(&table, &elements)]).unwrap();
        assert_eq!(found(&mut kernel, &table), sorted(elements));
        // The load was not mistaken for somebody else's change.
        let added = Operation::AddElement(frontend(Family::Ip, 1, handle(1, 0xa)));
        commit(&mut kernel, &table, &[added]).unwrap();
    });
}

#[test]
fn a_batch_larger_than_the_send_buffer_is_sent_in_parts() {
    let name = "committing::a_batch_larger_than_the_send_buffer_is_sent_in_parts";
    inside_user_namespace(name, || {
        let mut kernel = Kernel::open().unwrap();
        let (table, elements) = (table(Family::Ip), many(LARGE));
        kernel.load(&[(&table, &elements)]).unwrap();
        assert_eq!(found(&mut kernel, &table), sorted(elements));

        // The last part fails, the ones before stay.
        let mut batch = Batch::new();
        let mut more = many(2 * LARGE).split_off(usize::try_from(LARGE).unwrap());
        more.push(endpoint(handle(2, 0), 0, address(Family::Ip, 99), 1));
        let operations: Vec<_> = more.into_iter().map(Operation::AddElement).collect();
        batch.apply(&kernel.id(&table), &operations);
        let error = kernel.commit(&batch).unwrap_err();
        assert!(error.to_string().contains("parts of the transaction were committed"), "{error}");
        assert!(error.to_string().contains("key 20:0 . 0: "), "{error}");
    });
}
