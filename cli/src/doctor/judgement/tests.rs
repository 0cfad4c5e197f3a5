use proptest::prelude::*;

use super::*;

const NETWORK: Place = Place::Gateway(Front::Network);

fn judged(place: Place, field: Field, local: bool, action: Action, negated: bool) -> Verdict {
    judge(action, Condition { negated, holds_stand_in: false }, seen(place, field, local))
}

/// What the address needs: the policy Local, nothing, or something that the cluster cannot give.
#[derive(Clone, Copy, Debug)]
enum Needs {
    Local,
    Nothing,
    Impossible(Seen),
}

const PLACES: [(Place, Field, Needs); 14] = [
    (NETWORK, Field::Peer, Needs::Local),
    (NETWORK, Field::Remote, Needs::Local),
    (Place::Gateway(Front::TrustedProxies), Field::Peer, Needs::Impossible(Seen::StandIn)),
    (Place::Gateway(Front::TrustedProxies), Field::Remote, Needs::Nothing),
    (Place::Gateway(Front::ProxyProtocol), Field::Peer, Needs::Impossible(Seen::StandIn)),
    (Place::Gateway(Front::ProxyProtocol), Field::Remote, Needs::Nothing),
    (Place::BehindGateway(Front::Network), Field::Peer, Needs::Impossible(Seen::StandIn)),
    (Place::BehindGateway(Front::Network), Field::Remote, Needs::Local),
    (Place::BehindGateway(Front::TrustedProxies), Field::Peer, Needs::Impossible(Seen::StandIn)),
    (Place::BehindGateway(Front::TrustedProxies), Field::Remote, Needs::Impossible(Seen::StandIn)),
    (Place::BehindGateway(Front::ProxyProtocol), Field::Peer, Needs::Impossible(Seen::StandIn)),
    (Place::BehindGateway(Front::ProxyProtocol), Field::Remote, Needs::Nothing),
    (Place::Exposed, Field::Peer, Needs::Local),
    (Place::Exposed, Field::Remote, Needs::Impossible(Seen::Claimed)),
];

#[test]
fn each_place_has_the_client_s_address_under_its_own_condition() {
    for (place, field, needs) in PLACES {
        let (without, with) = match needs {
            Needs::Local => (Seen::StandIn, Seen::Client),
            Needs::Nothing => (Seen::Client, Seen::Client),
            Needs::Impossible(seen) => (seen, seen),
        };
        assert_eq!(seen(place, field, false), without, "{place:?} {field:?}");
        assert_eq!(seen(place, field, true), with, "{place:?} {field:?}");
    }
}

#[test]
fn a_lost_address_makes_an_outage_or_a_bypass_of_a_policy() {
    for (action, negated, verdict) in [
        (Action::Allow, false, Verdict::Closed),
        (Action::Allow, true, Verdict::Open),
        (Action::Deny, false, Verdict::Open),
        (Action::Deny, true, Verdict::Closed),
        (Action::Custom, false, Verdict::Open),
        (Action::Custom, true, Verdict::Misled),
        (Action::Audit, false, Verdict::Misled),
        (Action::Audit, true, Verdict::Misled),
    ] {
        assert_eq!(judged(NETWORK, Field::Peer, false, action, negated), verdict, "{action:?} {negated}");
        assert_eq!(judged(NETWORK, Field::Peer, true, action, negated), Verdict::Right);
        // Ranges that hold the nodes turn it round.
        let condition = Condition { negated: !negated, holds_stand_in: true };
        assert_eq!(judge(action, condition, Seen::StandIn), verdict, "{action:?} {negated}, nodes in it");
    }
}

#[test]
fn an_address_that_clients_choose_keeps_nobody_out() {
    for action in [Action::Allow, Action::Deny, Action::Custom] {
        for negated in [false, true] {
            assert_eq!(judged(Place::Exposed, Field::Remote, true, action, negated), Verdict::Open);
        }
    }
    assert_eq!(judged(Place::Exposed, Field::Remote, true, Action::Audit, false), Verdict::Misled);
}

proptest! {
    /// The verdict against what the data plane would do: the answer to a client in the ranges and to one outside of them, with the
    /// client's own address and with the stand-in's.
    #[test]
    fn a_verdict_is_what_the_answers_show(
        allow in any::<bool>(), negated in any::<bool>(), holds_stand_in in any::<bool>(), is_client in any::<bool>(),
    ) {
        let action = if allow { Action::Allow } else { Action::Deny };
        let admits = |in_ranges: bool| (in_ranges != negated) == allow;
        let should: Vec<bool> = [true, false].map(admits).into();
        let does: Vec<bool> = [true, false].map(|in_ranges| admits(if is_client { in_ranges } else { holds_stand_in })).into();
        let opened = should.iter().zip(&does).any(|(should, does)| !should && *does);
        let closed = should.iter().zip(&does).any(|(should, does)| *should && !does);
        let seen = if is_client { Seen::Client } else { Seen::StandIn };
        let verdict = judge(action, Condition { negated, holds_stand_in }, seen);
        let expected = match (opened, closed) {
            (true, false) => Verdict::Open,
            (false, true) => Verdict::Closed,
            (false, false) => Verdict::Right,
            (true, true) => unreachable!("a constant answer is wrong in one way only"),
        };
        prop_assert_eq!(verdict, expected);
    }
}
