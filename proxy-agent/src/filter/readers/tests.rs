mod properties;

use std::time::Duration;

use super::*;

const KUBECTL: ClientId = ClientId { user_agent: UserAgent::Other, connection: 7 };

fn kube_proxy(connection: ConnectionId) -> ClientId {
    ClientId { user_agent: UserAgent::KubeProxy, connection }
}

fn delivery(epoch: Epoch) -> Delivery {
    Delivery { epoch, at: SystemTime::UNIX_EPOCH + Duration::from_secs(epoch) }
}

fn has(readers: &Readers, epoch: Epoch) -> bool {
    readers.kube_proxy(epoch).synced_at.is_some()
}

/// Watches until the end of the initial events.
fn reads(readers: &mut Readers, client: ClientId, epoch: Epoch) {
    assert_eq!(readers.admit(client, ServiceRead::WatchFromStart, epoch), Admission::Forward);
    readers.watch_opened(client);
    readers.initial_events_sent(client, delivery(epoch));
}

#[test]
fn kube_proxy_is_known_by_the_first_word_of_its_user_agent() {
    for (user_agent, program) in [
        (Some("kube-proxy/v1.37.0 (linux/amd64) kubernetes/0a1b2c3"), UserAgent::KubeProxy),
        (Some("kube-proxy-amd64/v1.33.1 (linux/amd64)"), UserAgent::KubeProxy),
        (Some("kubectl/v1.37.0 (linux/amd64) kubernetes/0a1b2c3"), UserAgent::Other),
        (Some("curl/8.14.1"), UserAgent::Other),
        (Some("not-a-kube-proxy/1"), UserAgent::Other),
        (Some(""), UserAgent::Other),
        (None, UserAgent::Other),
    ] {
        assert_eq!(UserAgent::parse(user_agent), program, "{user_agent:?}");
    }
}

#[test]
fn nobody_goes_on_from_what_another_has_listed() {
    let mut readers = Readers::default();
    reads(&mut readers, kube_proxy(1), 1);
    // The view changes; another client lists before kube-proxy resumes its watch.
    for client in [KUBECTL, kube_proxy(2)] {
        readers.admit(client, ServiceRead::List, 2);
        readers.list_sent(client, delivery(2));
    }
    assert_eq!(readers.admit(kube_proxy(1), ServiceRead::WatchFromVersion, 2), Admission::Expired);
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
    readers.connection_closed(1);
    assert!(!has(&readers, 2), "it is away, with the old view");
    reads(&mut readers, kube_proxy(2), 3);
    assert!(has(&readers, 3), "the other one is behind, which matters to nobody");
    assert_eq!(readers.kube_proxy(3).open_watches, 1, "watches of others are not kube-proxy's");
}

#[test]
fn of_two_clients_of_its_name_neither_speaks_for_the_other_while_both_are_connected() {
    let mut readers = Readers::default();
    reads(&mut readers, kube_proxy(1), 1);
    reads(&mut readers, kube_proxy(2), 2);
    assert!(!has(&readers, 2), "one of them has the old view");
    readers.connection_closed(2);
    assert!(!has(&readers, 2), "the one that is left has the old view");
    reads(&mut readers, kube_proxy(1), 2);
    assert!(has(&readers, 2));
}

#[test]
fn the_rules_of_a_kube_proxy_that_left_stay_true_until_the_view_changes() {
    let mut readers = Readers::default();
    reads(&mut readers, kube_proxy(1), 1);
    readers.watch_closed(kube_proxy(1));
    readers.connection_closed(1);
    assert_eq!(readers.kube_proxy(1), KubeProxySync { synced_at: Some(delivery(1).at), open_watches: 0 });
    assert!(!has(&readers, 2));
    // Until a new kube-proxy has read the view, the rules are those of its predecessor.
    assert_eq!(readers.admit(kube_proxy(2), ServiceRead::WatchFromVersion, 1), Admission::Expired);
    readers.admit(kube_proxy(2), ServiceRead::WatchFromStart, 1);
    assert!(has(&readers, 1) && !has(&readers, 2));
    readers.initial_events_sent(kube_proxy(2), delivery(2));
    assert!(has(&readers, 2) && !has(&readers, 1));
}

#[test]
fn where_no_client_has_its_name_all_count() {
    let mut readers = Readers::default();
    let (one, two) = (KUBECTL, ClientId { connection: 8, ..KUBECTL });
    reads(&mut readers, one, 1);
    assert!(has(&readers, 1));
    readers.admit(two, ServiceRead::List, 1);
    readers.list_sent(two, delivery(1));
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
        readers.admit(kube_proxy(connection), ServiceRead::List, 1);
        readers.admit(ClientId { connection, ..KUBECTL }, ServiceRead::List, 1);
        readers.connection_closed(connection);
    }
    assert!(readers.connected.is_empty() && readers.disconnected.is_empty());
}
