mod properties;

use std::time::Duration;

use super::*;

const KUBECTL: Client = Client { program: Program::Other, connection: 7 };

fn kube_proxy(connection: ConnectionId) -> Client {
    Client { program: Program::KubeProxy, connection }
}

fn had(epoch: Epoch) -> Had {
    Had { epoch, since: SystemTime::UNIX_EPOCH + Duration::from_secs(epoch) }
}

fn has(readers: &Readers, epoch: Epoch) -> bool {
    readers.reading(epoch).had_since.is_some()
}

/// Lists and watches to the end of the initial events.
fn reads(readers: &mut Readers, client: Client, epoch: Epoch) {
    assert_eq!(readers.admit(client, Read::WatchFromStart, epoch), Admission::Forward);
    readers.watch_opened(client);
    readers.initial_events_sent(client, had(epoch));
}

#[test]
fn kube_proxy_is_known_by_the_first_word_of_its_user_agent() {
    for (user_agent, program) in [
        (Some("kube-proxy/v1.37.0 (linux/amd64) kubernetes/0a1b2c3"), Program::KubeProxy),
        (Some("kube-proxy-amd64/v1.33.1 (linux/amd64)"), Program::KubeProxy),
        (Some("kubectl/v1.37.0 (linux/amd64) kubernetes/0a1b2c3"), Program::Other),
        (Some("curl/8.14.1"), Program::Other),
        (Some("not-a-kube-proxy/1"), Program::Other),
        (Some(""), Program::Other),
        (None, Program::Other),
    ] {
        assert_eq!(Program::named(user_agent), program, "{user_agent:?}");
    }
}

#[test]
fn nobody_goes_on_from_what_another_has_listed() {
    let mut readers = Readers::default();
    reads(&mut readers, kube_proxy(1), 1);
    // The view changes; somebody looks around before kube-proxy comes back to its watch.
    for client in [KUBECTL, kube_proxy(2)] {
        readers.admit(client, Read::List, 2);
        readers.list_sent(client, had(2));
    }
    assert_eq!(readers.admit(kube_proxy(1), Read::WatchFromVersion, 2), Admission::Expired);
    assert!(!has(&readers, 2));
    reads(&mut readers, kube_proxy(1), 2);
    assert!(has(&readers, 2));
}

#[test]
fn a_client_of_another_name_neither_makes_a_view_known_nor_unknown() {
    let mut readers = Readers::default();
    reads(&mut readers, kube_proxy(1), 1);
    reads(&mut readers, KUBECTL, 1);
    reads(&mut readers, KUBECTL, 2);
    assert!(!has(&readers, 2), "kube-proxy has not read it");
    readers.left(1);
    assert!(!has(&readers, 2), "it is away, with the old view");
    reads(&mut readers, kube_proxy(2), 3);
    assert!(has(&readers, 3), "the other one is behind, which matters to nobody");
    assert_eq!(readers.reading(3).watches, 1, "watches of others are not kube-proxy's");
}

#[test]
fn of_two_clients_of_its_name_neither_speaks_for_the_other_while_both_are_connected() {
    let mut readers = Readers::default();
    reads(&mut readers, kube_proxy(1), 1);
    reads(&mut readers, kube_proxy(2), 2);
    assert!(!has(&readers, 2), "one of them has the old view");
    readers.left(2);
    assert!(!has(&readers, 2), "the one that is left has the old view");
    reads(&mut readers, kube_proxy(1), 2);
    assert!(has(&readers, 2));
}

#[test]
fn the_rules_of_a_kube_proxy_that_left_stay_true_until_the_view_changes() {
    let mut readers = Readers::default();
    reads(&mut readers, kube_proxy(1), 1);
    readers.watch_closed(kube_proxy(1));
    readers.left(1);
    assert_eq!(readers.reading(1), Reading { had_since: Some(had(1).since), watches: 0 });
    assert!(!has(&readers, 2));
    // It comes back, or another is started: until it has read, the rules are those of the one before.
    assert_eq!(readers.admit(kube_proxy(2), Read::WatchFromVersion, 1), Admission::Expired);
    readers.admit(kube_proxy(2), Read::WatchFromStart, 1);
    assert!(has(&readers, 1) && !has(&readers, 2));
    readers.initial_events_sent(kube_proxy(2), had(2));
    assert!(has(&readers, 2) && !has(&readers, 1));
}

#[test]
fn where_no_client_has_its_name_all_count() {
    let mut readers = Readers::default();
    let (one, two) = (KUBECTL, Client { connection: 8, ..KUBECTL });
    reads(&mut readers, one, 1);
    assert!(has(&readers, 1));
    readers.admit(two, Read::List, 1);
    readers.list_sent(two, had(1));
    assert!(has(&readers, 1), "one that only lists keeps nothing up to date");
    reads(&mut readers, two, 2);
    assert!(!has(&readers, 2));
    reads(&mut readers, kube_proxy(9), 2);
    assert!(has(&readers, 2), "kube-proxy has come");
}

#[test]
fn a_connection_that_ends_is_forgotten() {
    let mut readers = Readers::default();
    for connection in 0..100 {
        readers.admit(kube_proxy(connection), Read::List, 1);
        readers.admit(Client { connection, ..KUBECTL }, Read::List, 1);
        readers.left(connection);
    }
    assert!(readers.open.is_empty() && readers.left.is_empty());
}
