use super::{Change, Observer, TableName};
use crate::netlink::attributes::Writer;
use crate::netlink::message::{self, Head, Messages};
use crate::netlink::nf_tables::message as kind;
use crate::nft::{Family, Name};

const OWN: u32 = 100;
const OTHER: u32 = 200;

fn observer() -> Observer {
    let mut observer = Observer::new(OWN);
    observer.follow(TableName { family: Family::Ip, name: Name::constant("ours") });
    observer.start_at(1);
    observer
}

fn notify(observer: &mut Observer, port: u32, kind: u16, family: u8, body: impl FnOnce(&mut Writer<'_>)) {
    let mut bytes = Vec::new();
    message::write(&mut bytes, Head { kind, flags: 0, sequence: 0, family, resource: 0 }, body);
    bytes[12..16].copy_from_slice(&port.to_ne_bytes());
    observer.read(Messages(&bytes).next().unwrap().unwrap()).unwrap();
}

fn delete_chain(observer: &mut Observer, port: u32, family: u8, table: &str) {
    notify(observer, port, kind::DELETE_CHAIN, family, |out| {
        out.text(1, table);
        out.text(3, "services");
    });
}

fn committed(observer: &mut Observer, port: u32, generation: u32) {
    notify(observer, port, kind::NEW_GENERATION, 0, |out| {
        out.be32(1, generation);
        out.be32(2, 4711);
        out.text(3, "nft");
    });
}

fn ours() -> TableName {
    TableName { family: Family::Ip, name: Name::constant("ours") }
}

#[test]
fn a_change_is_told_once_with_its_process_when_the_commit_is_complete() {
    let mut observer = observer();
    delete_chain(&mut observer, OTHER, 2, "ours");
    assert_eq!(observer.tell(), None);
    committed(&mut observer, OTHER, 2);
    let change = observer.tell().unwrap();
    assert_eq!(change.to_string(), "process 4711 (nft) changed table ip ours: deleted chain services");
    assert_eq!((observer.tell(), observer.seen()), (None, Some(2)));
}

#[test]
fn a_change_stands_until_the_table_is_followed_anew() {
    let mut observer = observer();
    delete_chain(&mut observer, OTHER, 2, "ours");
    committed(&mut observer, OTHER, 2);
    observer.tell();
    assert!(observer.change().is_some() && observer.change_of(&ours()).is_some());
    observer.follow(ours());
    assert_eq!((observer.change(), observer.seen()), (None, Some(2)));
}

#[test]
fn reading_one_table_does_not_hide_the_change_of_another() {
    let mut observer = observer();
    let other_family = TableName { family: Family::Ip6, ..ours() };
    observer.follow(other_family.clone());
    delete_chain(&mut observer, OTHER, 2, "ours");
    delete_chain(&mut observer, OTHER, 10, "ours");
    committed(&mut observer, OTHER, 2);
    observer.follow(ours());
    assert_eq!(observer.change_of(&ours()), None);
    assert!(observer.change_of(&other_family).is_some());
    assert!(observer.tell().unwrap().to_string().contains("table ip6 ours"));
}

#[test]
fn own_changes_and_those_of_other_tables_only_advance_the_generation() {
    let mut observer = observer();
    delete_chain(&mut observer, OWN, 2, "ours");
    committed(&mut observer, OWN, 2);
    delete_chain(&mut observer, OTHER, 2, "theirs");
    delete_chain(&mut observer, OTHER, 10, "ours");
    committed(&mut observer, OTHER, 3);
    assert_eq!((observer.change(), observer.seen()), (None, Some(3)));
}

#[test]
fn lost_notifications_may_have_changed_every_table() {
    let mut observer = observer();
    observer.lose();
    assert_eq!(observer.tell(), Some(Change::Unknown));
    observer.unfollow(&ours());
    observer.lose();
    assert_eq!(observer.change(), None);
}

#[test]
fn generations_never_go_back_and_wrap_around() {
    let mut observer = observer();
    observer.start_at(5);
    committed(&mut observer, OTHER, 4);
    assert_eq!(observer.seen(), Some(5));
    assert!(observer.has_seen(4) && observer.has_seen(5) && !observer.has_seen(6));
    observer.start_at(u32::MAX);
    committed(&mut observer, OTHER, 1);
    assert_eq!(observer.seen(), Some(1));
    assert!(observer.has_seen(u32::MAX) && !observer.has_seen(2));
}
