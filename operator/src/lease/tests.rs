use super::*;

const TIMING: Timing = Timing {
    lease: Duration::from_secs(15),
    give_up: Duration::from_secs(10),
    renew: Duration::from_secs(3),
};

fn seconds(count: u64) -> Duration {
    Duration::from_secs(count)
}

fn lease(holder: Option<&str>, version: u32) -> Lease {
    Lease {
        metadata: ObjectMeta { resource_version: Some(version.to_string()), ..ObjectMeta::default() },
        spec: Some(LeaseSpec {
            holder_identity: holder.map(str::to_owned),
            lease_duration_seconds: Some(15),
            // Clock skew does not matter.
            renew_time: Some(MicroTime(Timestamp::UNIX_EPOCH)),
            lease_transitions: Some(4),
            ..LeaseSpec::default()
        }),
    }
}

fn election() -> (Election, Instant) {
    (Election::new("a".to_owned(), TIMING), Instant::now())
}

#[test]
fn what_is_not_known_is_read_and_what_is_not_there_is_made() {
    let (mut election, now) = election();
    assert_eq!(election.decide(now), Step::Read);
    election.observe(None, now);
    assert_eq!(election.decide(now), Step::Create);
    let made = election.held("name", Timestamp::UNIX_EPOCH);
    assert_eq!(made.metadata.name.as_deref(), Some("name"));
    let spec = made.spec.clone().unwrap();
    assert_eq!((spec.holder_identity.as_deref(), spec.lease_transitions), (Some("a"), Some(0)));
    assert_eq!(spec.lease_duration_seconds, Some(15));
    election.wrote(lease(Some("a"), 1), now);
    assert_eq!(election.leads_until(), Some(now + seconds(10)));
    assert_eq!(election.decide(now), Step::Wait(now + seconds(3)));
    assert_eq!(election.decide(now + seconds(3)), Step::Renew);
}

#[test]
fn a_lease_of_another_is_taken_when_it_has_not_changed_for_its_duration_as_seen_from_here() {
    let (mut election, now) = election();
    election.observe(Some(lease(Some("b"), 1)), now);
    assert_eq!(election.decide(now), Step::Wait(now + seconds(15)));
    election.observe(Some(lease(Some("b"), 1)), now + seconds(5));
    assert_eq!(election.decide(now), Step::Wait(now + seconds(15)), "the same again is no change");
    election.observe(Some(lease(Some("b"), 2)), now + seconds(10));
    assert_eq!(election.decide(now + seconds(24)), Step::Wait(now + seconds(25)));
    assert_eq!(election.decide(now + seconds(25)), Step::Take);
    assert_eq!(election.leads_until(), None, "wanting it is not having it");

    let taken = election.held("name", Timestamp::UNIX_EPOCH);
    assert_eq!(taken.metadata.resource_version.as_deref(), Some("2"), "refused when it has changed");
    assert_eq!(taken.spec.unwrap().lease_transitions, Some(5));
    election.lost_the_race();
    assert_eq!(election.decide(now + seconds(25)), Step::Read);
    election.observe(Some(lease(Some("c"), 3)), now + seconds(25));
    assert_eq!(election.decide(now + seconds(25)), Step::Wait(now + seconds(40)));
}

#[test]
fn a_free_lease_is_taken_at_once() {
    let (mut election, now) = election();
    election.observe(Some(lease(Some("b"), 1)), now);
    election.observe(Some(lease(None, 2)), now);
    assert_eq!(election.decide(now), Step::Take);
    election.observe(Some(lease(Some(""), 3)), now);
    assert_eq!(election.decide(now), Step::Take, "client-go releases with an empty holder");
}

#[test]
fn a_lease_of_this_replicas_former_life_is_renewed_before_it_leads() {
    let (mut election, now) = election();
    election.observe(Some(lease(Some("a"), 1)), now);
    assert_eq!(election.leads_until(), None);
    assert_eq!(election.decide(now), Step::Renew);
    assert_eq!(election.held("name", Timestamp::UNIX_EPOCH).spec.unwrap().lease_transitions, Some(4));
    election.wrote(lease(Some("a"), 2), now);
    assert!(election.leads_until().is_some());
}

#[test]
fn a_holder_that_cannot_renew_stops_acting_before_another_can_begin() {
    let (mut election, now) = election();
    election.wrote(lease(Some("a"), 1), now);
    election.failed(now + seconds(4));
    assert_eq!(election.decide(now + seconds(3)), Step::Wait(now + seconds(4)));
    assert_eq!(election.decide(now + seconds(4)), Step::Renew);
    assert_eq!(election.leads_until(), Some(now + seconds(10)));

    // The other replica sees the last renewal no earlier than its request was sent.
    let mut other = Election::new("b".to_owned(), TIMING);
    other.observe(Some(lease(Some("a"), 1)), now);
    let Step::Wait(taken) = other.decide(now) else { panic!("{:?}", other.decide(now)) };
    assert!(election.leads_until().unwrap() < taken);
}

#[test]
fn who_sees_another_holder_stops_at_once_and_old_news_is_ignored() {
    let (mut election, now) = election();
    election.wrote(lease(Some("a"), 5), now);
    election.observe(Some(lease(Some("b"), 4)), now);
    assert!(election.leads_until().is_some(), "that was before");
    election.observe(Some(lease(Some("b"), 6)), now);
    assert_eq!(election.leads_until(), None);
    assert_eq!(election.holder(), Some("b"));
    assert!(election.released(Timestamp::UNIX_EPOCH).is_none(), "it is not ours to give back");
}

#[test]
fn it_is_given_back_without_a_holder() {
    let (mut election, now) = election();
    assert!(election.released(Timestamp::UNIX_EPOCH).is_none());
    election.wrote(lease(Some("a"), 5), now);
    let released = election.released(Timestamp::UNIX_EPOCH).unwrap();
    assert_eq!(holder(&released), None);
    assert_eq!(released.metadata.resource_version.as_deref(), Some("5"));
}
