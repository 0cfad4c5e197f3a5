use std::time::Duration;

use isp_plan::cluster::Identity;

use super::*;

fn forget(node: &str) -> Action {
    Action::Forget { node: node.to_owned(), identity: Identity::default() }
}

const SECOND: Duration = Duration::from_secs(1);

#[test]
fn an_action_that_failed_waits_longer_each_time_and_others_do_not() {
    let (mut holds, start) = (Holds::default(), Instant::now());
    holds.fail(&forget("a"), Until::Time, "refused", start);
    assert!(!holds.allow(&forget("a"), || None, start));
    assert!(holds.allow(&forget("b"), || None, start));
    assert_eq!(holds.next(start), Some(start + SECOND));
    assert!(holds.allow(&forget("a"), || None, start + SECOND));

    let later = start + SECOND;
    holds.fail(&forget("a"), Until::Time, "refused", later);
    assert!(!holds.allow(&forget("a"), || None, later + SECOND));
    assert!(holds.allow(&forget("a"), || None, later + 2 * SECOND));
    assert_eq!(holds.reasons().collect::<Vec<_>>(), [("forget-node ingresssourcenode/a", "refused")]);

    holds.succeed(&forget("a"));
    assert!(holds.allow(&forget("a"), || None, later));
    assert_eq!(holds.next(later), None);
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
fn what_is_no_longer_planned_is_forgotten() {
    let (mut holds, now) = (Holds::default(), Instant::now());
    holds.fail(&forget("a"), Until::Time, "refused", now);
    holds.fail(&forget("b"), Until::Time, "refused", now);
    holds.retain(&[forget("b")]);
    assert!(!holds.has_failed(&forget("a")));
    assert!(holds.has_failed(&forget("b")));
}
