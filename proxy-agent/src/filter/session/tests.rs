use std::time::Duration;

use super::*;

fn delivery(epoch: Epoch) -> Delivery {
    Delivery { epoch, at: SystemTime::UNIX_EPOCH + Duration::from_secs(epoch) }
}

fn has(session: &Session, epoch: Epoch) -> bool {
    session.synced().is_some_and(|delivery| delivery.epoch == epoch)
}

#[test]
fn a_read_that_was_begun_elsewhere_lists_anew() {
    let mut session = Session::default();
    assert_eq!(session.admit(ServiceRead::WatchFromVersion, 1), Admission::Expired);
    assert_eq!(session.admit(ServiceRead::NextPage, 1), Admission::Expired);
    assert!(!has(&session, 1));
}

#[test]
fn a_list_and_the_watch_after_it_make_a_view_known() {
    let mut session = Session::default();
    assert_eq!(session.admit(ServiceRead::List, 1), Admission::Forward);
    session.list_sent(delivery(1));
    assert!(!has(&session, 1), "more pages may follow");
    assert_eq!(session.admit(ServiceRead::NextPage, 1), Admission::Forward);
    session.list_sent(Delivery { at: SystemTime::UNIX_EPOCH, ..delivery(1) });
    assert_eq!(session.admit(ServiceRead::WatchFromVersion, 1), Admission::Forward);
    assert_eq!(session.synced().unwrap().at, SystemTime::UNIX_EPOCH, "since its last page");
    assert_eq!(session.admit(ServiceRead::WatchFromVersion, 1), Admission::Forward, "it may reconnect");
}

#[test]
fn initial_events_make_a_view_known_when_they_have_ended() {
    let mut session = Session::default();
    assert_eq!(session.admit(ServiceRead::WatchFromStart, 1), Admission::Forward);
    assert!(!has(&session, 1));
    assert_eq!(
        session.admit(ServiceRead::WatchFromVersion, 1),
        Admission::Expired,
        "it was cut before they ended"
    );
    session.initial_events_sent(delivery(1));
    assert!(has(&session, 1));
    assert_eq!(session.admit(ServiceRead::WatchFromVersion, 1), Admission::Forward);
}

#[test]
fn a_new_view_expires_every_read_of_the_old_one_once() {
    let mut session = Session::default();
    session.admit(ServiceRead::WatchFromStart, 1);
    session.initial_events_sent(delivery(1));
    assert_eq!(session.admit(ServiceRead::WatchFromVersion, 2), Admission::Expired);
    assert!(!has(&session, 2));
    session.admit(ServiceRead::List, 2);
    session.list_sent(delivery(2));
    assert_eq!(session.admit(ServiceRead::WatchFromVersion, 2), Admission::Forward);
    assert!(has(&session, 2));
}

#[test]
fn a_list_whose_pages_belong_to_two_views_starts_over() {
    let mut session = Session::default();
    session.admit(ServiceRead::List, 1);
    session.list_sent(delivery(1));
    assert_eq!(session.admit(ServiceRead::NextPage, 2), Admission::Expired);
    // A list that was in progress when the view changed counts for the old view.
    session.admit(ServiceRead::List, 2);
    session.list_sent(delivery(1));
    assert_eq!(session.admit(ServiceRead::WatchFromVersion, 2), Admission::Expired);
}

#[test]
fn a_slow_list_of_an_earlier_view_does_not_undo_what_was_read_since() {
    let mut session = Session::default();
    session.admit(ServiceRead::List, 1);
    session.admit(ServiceRead::WatchFromStart, 2);
    session.initial_events_sent(delivery(2));
    session.initial_events_sent(delivery(1));
    assert!(has(&session, 2));
    session.list_sent(delivery(2));
    session.list_sent(delivery(1));
    assert_eq!(session.admit(ServiceRead::WatchFromVersion, 2), Admission::Forward);
}
