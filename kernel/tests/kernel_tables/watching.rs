//! Other programs that change our tables, and agents that come after each other.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use isp_dataplane::netlink::{Batch, Change, Difference};
use isp_dataplane::nft::{Family, Name, Operation, Table, Value};
use isp_kernel::{CommitError, Found, Kernel, KernelThread, LoadError, ReadError};

use crate::committing::many;
use crate::fixture::{self, NAME, address, endpoint, handle, table};
use crate::inside::{inside, inside_without_rights};
use crate::loading::{found, sorted};
use crate::nft::{feed, nft};

const SOON: Duration = Duration::from_secs(5);
const NOT_SOON: Duration = Duration::from_millis(50);

fn tables() -> Vec<Table> {
    Family::ALL.map(table).to_vec()
}

/// A kernel that may own tables, with the fixture loaded.
fn owner() -> (Kernel, Table) {
    let mut kernel = Kernel::open().unwrap();
    let capabilities = kernel.probe(&tables()).unwrap();
    assert!(capabilities.can_own, "{capabilities:?}");
    kernel.own_tables();
    let table = table(Family::Ip);
    kernel.load(&[(&table, &fixture::elements(Family::Ip))]).unwrap();
    (kernel, table)
}

fn shared() -> (Kernel, Table) {
    let mut kernel = Kernel::open().unwrap();
    let table = table(Family::Ip);
    kernel.load(&[(&table, &fixture::elements(Family::Ip))]).unwrap();
    (kernel, table)
}

#[test]
fn a_probe_leaves_nothing_behind() {
    inside("watching::a_probe_leaves_nothing_behind", || {
        let mut kernel = Kernel::open().unwrap();
        kernel.probe(&tables()).unwrap();
        assert_eq!(nft(&["list", "ruleset"]), "");
    });
}

#[test]
fn a_kernel_that_refuses_a_rule_is_refused_with_the_reason() {
    inside("watching::a_kernel_that_refuses_a_rule_is_refused_with_the_reason", || {
        let mut table = table(Family::Ip);
        // To the kernel, a set that is missing is like an expression that it does not have.
        table.sets.retain(|set| set.name.as_str() != "rejected");
        let error = Kernel::open().unwrap().probe(&[table]).unwrap_err().to_string();
        assert!(error.contains("does not take the rules of this program"), "{error}");
        assert!(error.contains("add a rule of chain filter-input of table ip isp-test-probe: "), "{error}");
        assert_eq!(nft(&["list", "ruleset"]), "");
    });
}

#[test]
fn a_program_without_the_capability_is_told_so() {
    inside_without_rights("watching::a_program_without_the_capability_is_told_so", || {
        let Err(error) = Kernel::open() else { panic!("opened") };
        assert!(error.to_string().contains("needs CAP_NET_ADMIN"), "{error}");
    });
}

#[test]
fn nothing_happens_without_a_change() {
    inside("watching::nothing_happens_without_a_change", || {
        let (mut kernel, table) = shared();
        let mut batch = Batch::new();
        let added = endpoint(handle(1, 0xe), 0, address(Family::Ip, 1), 1);
        batch.apply(&kernel.id(&table), &[Operation::AddElement(added)]);
        kernel.commit(&batch).unwrap();
        nft(&["add", "table", "ip", "other"]);
        nft(&["add", "table", "ip6", NAME]);
        assert_eq!(kernel.changed(NOT_SOON).unwrap(), None);
    });
}

#[test]
fn a_flush_by_another_process_is_noticed_at_once_with_its_name_and_repaired() {
    inside("watching::a_flush_by_another_process_is_noticed_at_once_with_its_name_and_repaired", || {
        let (mut kernel, table) = shared();
        for flush in
            [&["flush", "ruleset"][..], &["delete", "table", "ip", NAME], &["flush", "table", "ip", NAME]]
        {
            nft(flush);
            let start = Instant::now();
            let change = kernel.changed(SOON).unwrap().unwrap();
            assert!(start.elapsed() < Duration::from_secs(1));
            let Change::ByOther { process, .. } = &change else { panic!("{change}") };
            assert_eq!(process.name, "nft");
            assert!(
                !matches!(kernel.read(&table).unwrap(), Found::Present { difference: None, .. }),
                "{flush:?} changed nothing"
            );
            kernel.load(&[(&table, &fixture::elements(Family::Ip))]).unwrap();
            assert_eq!(found(&mut kernel, &table), sorted(fixture::elements(Family::Ip)));
        }
    });
}

#[test]
fn every_edit_of_a_rule_a_chain_or_a_set_is_found() {
    inside("watching::every_edit_of_a_rule_a_chain_or_a_set_is_found", || {
        let edits: &[(&str, &str)] = &[
            ("add rule ip isp-test services drop", "chain services has 2 rules instead of 1"),
            ("flush chain ip isp-test services", "chain services has 0 rules instead of 1"),
            ("add chain ip isp-test extra", "chain extra is not part of the table"),
            ("add set ip isp-test extra { type ipv4_addr; }", "set extra is not part of the table"),
            (
                "flush chain ip isp-test nat-output\nadd rule ip isp-test nat-output jump choose",
                "rule 1 of chain nat-output is another one",
            ),
            (
                "flush chain ip isp-test nat-output\nadd rule ip isp-test nat-output counter jump services",
                "rule 1 of chain nat-output is another one",
            ),
            (
                "add chain ip isp-test nat-output { policy drop; }",
                "chain nat-output has another type, hook, priority or policy",
            ),
            (
                "flush chain ip isp-test filter-input\ndelete set ip isp-test rejected",
                "set rejected is missing",
            ),
            ("delete chain ip isp-test odd", "chain odd is missing"),
            (
                "add element ip isp-test frontends { 1.2.3.4 . icmp . 0 : 1:1 }",
                "set frontends has 1 elements that do not belong there",
            ),
        ];
        let (mut kernel, table) = shared();
        for (edit, expected) in edits {
            feed(edit).unwrap();
            assert!(kernel.changed(SOON).unwrap().is_some(), "{edit} was not noticed");
            let Found::Present { difference: Some(difference), .. } = kernel.read(&table).unwrap() else {
                panic!("{edit} was not found")
            };
            assert_eq!(difference.to_string(), *expected, "{edit}");
            kernel.load(&[(&table, &[])]).unwrap();
        }
    });
}

#[test]
fn nobody_else_changes_a_table_with_an_owner() {
    inside("watching::nobody_else_changes_a_table_with_an_owner", || {
        let (mut kernel, table) = owner();
        feed("flush ruleset").unwrap();
        for edit in ["delete table ip isp-test", "add rule ip isp-test services drop"] {
            assert!(feed(edit).unwrap_err().contains("Operation not permitted"), "{edit}");
        }
        assert_eq!(kernel.changed(NOT_SOON).unwrap(), None);
        assert_eq!(found(&mut kernel, &table), sorted(fixture::elements(Family::Ip)));
        nft(&["list", "ruleset"]);
    });
}

#[test]
fn the_next_agent_adopts_what_the_last_one_left() {
    inside("watching::the_next_agent_adopts_what_the_last_one_left", || {
        let (kernel, table) = owner();
        drop(kernel);
        assert!(nft(&["list", "ruleset"]).contains("10.96.0.1 . tcp . 80"));

        let mut next = Kernel::open().unwrap();
        next.own_tables();
        assert_eq!(found(&mut next, &table), sorted(fixture::elements(Family::Ip)));
        next.adopt(&[&table]).unwrap();
        assert!(feed("delete table ip isp-test").unwrap_err().contains("Operation not permitted"));
        assert_eq!(found(&mut next, &table), sorted(fixture::elements(Family::Ip)));
        next.unload(&[&table]).unwrap();
        assert_eq!(nft(&["list", "ruleset"]), "");
        next.unload(&[&table]).unwrap();
    });
}

#[test]
fn a_second_agent_leaves_the_tables_of_the_first_alone_and_names_it() {
    inside("watching::a_second_agent_leaves_the_tables_of_the_first_alone_and_names_it", || {
        let (mut first, table) = owner();
        let mut second = Kernel::open().unwrap();
        second.own_tables();
        let error = second.read(&table).unwrap_err();
        assert!(matches!(error, ReadError::AnotherOwner { .. }), "{error}");
        assert!(error.to_string().contains("another process owns table ip isp-test"), "{error}");
        let error = second.load(&[(&table, &[])]).unwrap_err();
        assert!(matches!(error, LoadError::Read(ReadError::AnotherOwner { .. })), "{error}");
        let error = second.adopt(&[&table]).unwrap_err();
        assert!(matches!(&error, CommitError::Refused(_)) && error.is_owned_by_another(), "{error}");
        assert_eq!(found(&mut first, &table), sorted(fixture::elements(Family::Ip)));
    });
}

#[test]
fn a_table_of_an_older_agent_without_an_owner_is_replaced_by_one_with_an_owner() {
    inside("watching::a_table_of_an_older_agent_without_an_owner_is_replaced_by_one_with_an_owner", || {
        let (kernel, table) = shared();
        drop(kernel);
        let mut next = Kernel::open().unwrap();
        next.own_tables();
        let Found::Present { difference, elements } = next.read(&table).unwrap() else { panic!("absent") };
        assert_eq!(difference, Some(Difference::Ownership));
        next.load(&[(&table, &elements)]).unwrap();
        assert!(feed("delete table ip isp-test").unwrap_err().contains("Operation not permitted"));
        assert_eq!(found(&mut next, &table), sorted(fixture::elements(Family::Ip)));
    });
}

#[test]
fn lost_notifications_are_a_change_of_unknown_kind_and_commits_still_get_their_answers() {
    let name =
        "watching::lost_notifications_are_a_change_of_unknown_kind_and_commits_still_get_their_answers";
    inside(name, || {
        let (mut kernel, table) = shared();
        let flood = Table { name: Name::constant("flood"), ..table.clone() };
        Kernel::open().unwrap().load(&[(&flood, &many(300_000))]).unwrap();
        assert_eq!(kernel.changed(SOON).unwrap(), Some(Change::Unknown));
        assert_eq!(found(&mut kernel, &table), sorted(fixture::elements(Family::Ip)));
        let mut batch = Batch::new();
        let added = endpoint(handle(1, 0xe), 0, address(Family::Ip, 1), 1);
        batch.apply(&kernel.id(&table), &[Operation::AddElement(added)]);
        kernel.commit(&batch).unwrap();
    });
}

/// Commits something to a table over and over, from a socket of its own, until it is dropped.
struct Noise {
    end: Arc<AtomicBool>,
    commits: Arc<AtomicU32>,
    thread: Option<JoinHandle<()>>,
}

impl Noise {
    fn start(table: Table, pause: Duration) -> Self {
        let end = Arc::new(AtomicBool::new(false));
        let ends = Arc::clone(&end);
        let commits = Arc::new(AtomicU32::new(0));
        let counted = Arc::clone(&commits);
        let thread = thread::spawn(move || {
            let mut kernel = Kernel::open().unwrap();
            let toggled = endpoint(handle(1, 0xfff), 0, address(Family::Ip, 1), 1);
            while !ends.load(Ordering::Relaxed) {
                for operation in
                    [Operation::AddElement(toggled.clone()), Operation::DeleteElement(toggled.clone())]
                {
                    let mut batch = Batch::new();
                    batch.apply(&kernel.id(&table), &[operation]);
                    kernel.commit(&batch).unwrap();
                    counted.fetch_add(1, Ordering::Relaxed);
                    thread::sleep(pause);
                }
            }
        });
        Self { end, commits, thread: Some(thread) }
    }

    /// Whether it has committed more often than this so far. On a busy machine it may hardly run.
    fn was_louder_than(&self, commits: u32) -> bool {
        assert!(!self.thread.as_ref().unwrap().is_finished(), "it failed");
        self.commits.load(Ordering::Relaxed) > commits
    }

    fn stop(mut self) {
        self.end.store(true, Ordering::Relaxed);
        self.thread.take().unwrap().join().unwrap();
    }
}

#[test]
fn a_large_table_is_read_while_others_commit_to_their_own_all_the_time() {
    inside("watching::a_large_table_is_read_while_others_commit_to_their_own_all_the_time", || {
        let mut kernel = Kernel::open().unwrap();
        let (table, elements) = (table(Family::Ip), many(30_000));
        kernel.load(&[(&table, &elements)]).unwrap();
        let other = Table { name: Name::constant("other"), ..table.clone() };
        Kernel::open().unwrap().load(&[(&other, &[])]).unwrap();
        let elements = sorted(elements);
        let noise = Noise::start(other, Duration::from_millis(1));
        let mut reads = 0;
        while reads < 5 || !noise.was_louder_than(20) {
            assert!(found(&mut kernel, &table) == elements);
            reads += 1;
        }
        noise.stop();
    });
}

#[test]
fn two_programs_that_commit_at_the_same_time_both_succeed() {
    inside("watching::two_programs_that_commit_at_the_same_time_both_succeed", || {
        let (mut kernel, table) = shared();
        let other = Table { name: Name::constant("other"), ..table.clone() };
        Kernel::open().unwrap().load(&[(&other, &[])]).unwrap();
        let noise = Noise::start(other, Duration::ZERO);
        let mut added = 0;
        while added < 1_000 || !noise.was_louder_than(100) {
            let mut batch = Batch::new();
            let element = endpoint(handle(1, 0xe), added, address(Family::Ip, 1), 1);
            batch.apply(&kernel.id(&table), &[Operation::AddElement(element)]);
            while let Err(error) = kernel.commit(&batch) {
                // So many commits may overflow the buffer for notifications.
                assert!(matches!(error, CommitError::Overtaken(Change::Unknown)), "{error}");
                found(&mut kernel, &table);
            }
            added += 1;
        }
        noise.stop();
        let added = usize::try_from(added).unwrap();
        assert_eq!(found(&mut kernel, &table).len(), fixture::elements(Family::Ip).len() + added);
    });
}

#[test]
fn a_table_that_changes_while_it_is_read_is_read_again() {
    inside("watching::a_table_that_changes_while_it_is_read_is_read_again", || {
        let (mut kernel, table) = shared();
        let elements = sorted(fixture::elements(Family::Ip));
        let noise = Noise::start(table.clone(), Duration::from_millis(5));
        let end = Instant::now() + Duration::from_secs(1);
        while Instant::now() < end || !noise.was_louder_than(20) {
            let mut found = found(&mut kernel, &table);
            // With or without the one that comes and goes, but always all others.
            found.retain(|element| !element.key.contains(&Value::Handle(handle(1, 0xfff))));
            assert_eq!(found, elements);
        }
        noise.stop();
    });
}

#[test]
fn the_thread_runs_commits_and_reports_changes() {
    inside("watching::the_thread_runs_commits_and_reports_changes", || {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_time().build().unwrap();
        runtime.block_on(async {
            let (mut kernel, mut changes) = KernelThread::start().unwrap();
            let table = table(Family::Ip);
            let wanted = table.clone();
            kernel.run(move |kernel| kernel.load(&[(&wanted, &[])])).await.unwrap().unwrap();
            assert!(tokio::time::timeout(NOT_SOON, changes.next()).await.is_err());
            nft(&["flush", "ruleset"]);
            let change = tokio::time::timeout(SOON, changes.next()).await.unwrap().unwrap().unwrap();
            assert!(change.to_string().contains("changed table ip isp-test: "), "{change}");
            let found = kernel.run(move |kernel| kernel.read(&table)).await.unwrap().unwrap();
            assert_eq!(found, Found::Absent);
            drop(kernel);
            assert!(tokio::time::timeout(SOON, changes.next()).await.unwrap().is_none());
        });
    });
}
