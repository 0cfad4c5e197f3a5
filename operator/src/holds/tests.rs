use std::time::Duration;

use isp_plan::cluster::Identity;

use super::*;

fn forget(node: &str) -> Action {
    Action::Forget { report: node.to_owned(), identity: Identity::default() }
}

const SECOND: Duration = Duration::from_secs(1);

#[test]
fn an_action_that_failed_waits_longer_each_time_and_others_do_not() {
    let (mut holds, start) = (Holds::default(), Instant::now());
    holds.fail(&forget("a"), Until::Time, "refused", start);
    assert!(!holds.allow(&forget("a"), || None, start));
    assert!(holds.allow(&forget("b"), || None, start));
    assert_eq!(holds.next(Some(start)), Some(start + SECOND));
    assert!(holds.allow(&forget("a"), || None, start + SECOND));

    let later = start + SECOND;
    holds.fail(&forget("a"), Until::Time, "refused", later);
    assert!(!holds.allow(&forget("a"), || None, later + SECOND));
    assert!(holds.allow(&forget("a"), || None, later + 2 * SECOND));
    assert_eq!(holds.reasons().collect::<Vec<_>>(), [("forget-node ingresssourcenode/a", "refused")]);

    holds.succeed(&forget("a"));
    assert!(holds.allow(&forget("a"), || None, later));
    assert_eq!(holds.next(Some(later)), None);
}

#[test]
fn a_wait_that_ended_since_the_last_plan_is_not_missed_and_one_that_was_planned_with_is_no_reason_to_plan() {
    let (mut holds, start) = (Holds::default(), Instant::now());
    holds.fail(&forget("a"), Until::Time, "refused", start);
    let end = start + SECOND;
    assert_eq!(holds.next(None), Some(end));
    assert_eq!(holds.next(Some(end - SECOND / 1000)), Some(end), "however late it is asked");
    assert_eq!(holds.next(Some(end)), None, "that plan let it be tried");
}

#[test]
fn a_stale_action_goes_on_when_there_is_news_of_its_object_and_only_then() {
    let (mut holds, now) = (Holds::default(), Instant::now());
    holds.fail(&forget("a"), Until::News(Some("5".to_owned())), "conflict", now);
    assert!(holds.await_news());
    assert!(!holds.allow(&forget("a"), || Some("5"), now), "what is known is still the old version");
    assert!(holds.allow(&forget("a"), || Some("6"), now));
    assert!(holds.allow(&forget("a"), || None, now), "it is gone");
}

#[test]
fn what_was_made_is_not_made_again_until_there_was_time_to_tell_of_it() {
    let (mut holds, now) = (Holds::default(), Instant::now());
    holds.make(&forget("a"), now);
    assert!(!holds.allow(&forget("a"), || None, now), "nothing has been told");
    assert!(holds.allow(&forget("a"), || Some("5"), now), "it is there, and something is wrong with it");
    assert!(holds.allow(&forget("a"), || None, now + UNTIL_TOLD), "it has gone again");
    assert_eq!(holds.next(Some(now)), Some(now + UNTIL_TOLD));
    assert!(holds.await_news() && !holds.has_failed(&forget("a")));
    assert_eq!(holds.reasons().count(), 0);
}

#[test]
fn what_is_no_longer_planned_is_forgotten() {
    let (mut holds, now) = (Holds::default(), Instant::now());
    holds.fail(&forget("a"), Until::Time, "refused", now);
    holds.fail(&forget("b"), Until::Time, "refused", now);
    holds.retain(&[forget("b")]);
    assert!(!holds.has_failed(&forget("a")));
    assert!(holds.has_failed(&forget("b")));
}
