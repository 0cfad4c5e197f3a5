use super::*;
use crate::nft::Protocol;

fn frontend(number: u32) -> Frontend {
    Frontend { address: std::net::Ipv4Addr::from_bits(number).into(), protocol: Protocol::Tcp, port: 80 }
}

#[test]
fn a_port_keeps_its_identity() {
    let mut identities = Identities::default();
    let first = identities.obtain(frontend(1)).unwrap();
    assert_ne!(identities.obtain(frontend(2)), Ok(first));
    assert_eq!(identities.obtain(frontend(1)), Ok(first));
}

#[test]
fn a_retired_identity_is_not_reused_before_it_is_free_and_then_last() {
    let mut identities = Identities::default();
    let first = identities.obtain(frontend(0)).unwrap();
    assert_eq!(identities.retire(frontend(0)), Some(first));
    let all = Identity::LAST.cluster().0;
    for number in 1..all {
        assert_ne!(identities.obtain(frontend(number)), Ok(first));
    }
    assert_eq!(identities.obtain(frontend(all)), Err(Exhausted));
    identities.free(first);
    assert_eq!(identities.obtain(frontend(all)), Ok(first));
}

#[test]
fn a_port_that_comes_back_before_its_identity_is_free_gets_a_new_one() {
    let mut identities = Identities::default();
    let before = identities.obtain(frontend(1)).unwrap();
    identities.retire(frontend(1));
    assert_ne!(identities.obtain(frontend(1)), Ok(before));
}

#[test]
fn identities_of_the_predecessor_are_adopted() {
    let mut before = Identities::default();
    let known: Vec<_> =
        (0..5).map(|number| (frontend(number), before.obtain(frontend(number)).unwrap())).collect();
    let mut after = Identities::default();
    for (frontend, identity) in known.iter().rev() {
        after.adopt(*frontend, *identity);
    }
    for (frontend, identity) in &known {
        assert_eq!(after.obtain(*frontend), Ok(*identity));
    }
    assert!(known.iter().all(|(_, identity)| after.obtain(frontend(99)) != Ok(*identity)));
}

#[test]
fn two_frontends_with_one_identity_do_not_share_it() {
    let mut identities = Identities::default();
    identities.adopt(frontend(1), Identity::FIRST);
    identities.adopt(frontend(2), Identity::FIRST);
    assert_eq!(identities.obtain(frontend(1)), Ok(Identity::FIRST));
    assert_ne!(identities.obtain(frontend(2)), Ok(Identity::FIRST));
}

#[test]
fn abandoned_identities_are_those_without_a_port() {
    let mut identities = Identities::default();
    let kept = identities.obtain(frontend(1)).unwrap();
    let left = identities.obtain(frontend(2)).unwrap();
    identities.reserve(Identity::LAST);
    assert_eq!(identities.abandon(|each| each == frontend(1)), [left, Identity::LAST]);
    assert_eq!(identities.get(frontend(1)), Some(kept));
    assert_eq!(identities.get(frontend(2)), None);
}
