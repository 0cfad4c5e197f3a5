use proptest::prelude::*;

use super::*;

const NETWORK: Place = Place::Gateway(Front::Network);

fn judged(place: Place, field: Field, arrival: Arrival, action: Action, negated: bool) -> Verdict {
    let seen = seen(place, field, arrival);
    judge(action, &[Condition { seen, negated, stand_ins: Within::None, insiders: false }])
}

/// What the address depends on: a kept source IP, nothing, or something outside of the cluster.
#[derive(Clone, Copy, Debug)]
enum Needs {
    Kept,
    Nothing,
    Impossible(Seen),
}

const PLACES: [(Place, Field, Needs); 14] = [
    (NETWORK, Field::Peer, Needs::Kept),
    (NETWORK, Field::Remote, Needs::Kept),
    (Place::Gateway(Front::TrustedProxies), Field::Peer, Needs::Impossible(Seen::StandIn)),
    (Place::Gateway(Front::TrustedProxies), Field::Remote, Needs::Nothing),
    (Place::Gateway(Front::ProxyProtocol), Field::Peer, Needs::Impossible(Seen::StandIn)),
    (Place::Gateway(Front::ProxyProtocol), Field::Remote, Needs::Nothing),
    (Place::BehindGateway(Front::Network), Field::Peer, Needs::Impossible(Seen::StandIn)),
    (Place::BehindGateway(Front::Network), Field::Remote, Needs::Kept),
    (Place::BehindGateway(Front::TrustedProxies), Field::Peer, Needs::Impossible(Seen::StandIn)),
    (Place::BehindGateway(Front::TrustedProxies), Field::Remote, Needs::Impossible(Seen::StandIn)),
    (Place::BehindGateway(Front::ProxyProtocol), Field::Peer, Needs::Impossible(Seen::StandIn)),
    (Place::BehindGateway(Front::ProxyProtocol), Field::Remote, Needs::Nothing),
    (Place::Exposed, Field::Peer, Needs::Kept),
    (Place::Exposed, Field::Remote, Needs::Impossible(Seen::Claimed)),
];

#[test]
fn each_place_has_the_client_s_address_under_its_own_condition() {
    for (place, field, needs) in PLACES {
        let (without, with) = match needs {
            Needs::Kept => (Seen::StandIn, Seen::Client),
            Needs::Nothing => (Seen::Client, Seen::Client),
            Needs::Impossible(seen) => (seen, seen),
        };
        for lost in [Arrival::Node, Arrival::Balancer] {
            assert_eq!(seen(place, field, lost), without, "{place:?} {field:?}");
        }
        assert_eq!(seen(place, field, Arrival::Client), with, "{place:?} {field:?}");
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
        let judged = |arrival| judged(NETWORK, Field::Peer, arrival, action, negated);
        assert_eq!(judged(Arrival::Node), verdict, "{action:?} {negated}");
        assert_eq!(judged(Arrival::Client), Verdict::Right);
        // Ranges that hold the nodes turn it round.
        let condition =
            Condition { seen: Seen::StandIn, negated: !negated, stand_ins: Within::All, insiders: false };
        assert_eq!(judge(action, &[condition]), verdict, "{action:?} {negated}, nodes in it");
    }
}

#[test]
fn an_address_that_clients_choose_keeps_nobody_out() {
    for action in [Action::Allow, Action::Deny, Action::Custom] {
        for negated in [false, true] {
            assert_eq!(
                judged(Place::Exposed, Field::Remote, Arrival::Client, action, negated),
                Verdict::Open
            );
        }
    }
    assert_eq!(judged(Place::Exposed, Field::Remote, Arrival::Client, Action::Audit, false), Verdict::Misled);
}

#[test]
fn ranges_of_the_cluster_are_wrong_only_where_a_client_passes_for_an_insider() {
    let condition =
        |negated, stand_ins| Condition { seen: Seen::StandIn, negated, stand_ins, insiders: true };
    for (action, negated, stand_ins, verdict) in [
        // Only pods may call; clients outside appear as nodes, which are not in the ranges: right.
        (Action::Allow, false, Within::None, Verdict::Right),
        (Action::Allow, false, Within::All, Verdict::Open),
        (Action::Allow, false, Within::Some, Verdict::Open),
        (Action::Deny, true, Within::None, Verdict::Right),
        // Only the cluster is admitted, and every client that comes through a node appears as one.
        (Action::Deny, true, Within::All, Verdict::Open),
        (Action::Deny, false, Within::None, Verdict::Right),
        (Action::Deny, false, Within::All, Verdict::Closed),
        (Action::Allow, true, Within::All, Verdict::Closed),
    ] {
        let judged = judge(action, &[condition(negated, stand_ins)]);
        assert_eq!(judged, verdict, "{action:?} {negated} {stand_ins:?}");
    }
}

fn a_condition() -> impl Strategy<Value = Condition> {
    let seen = prop_oneof![Just(Seen::Client), Just(Seen::StandIn), Just(Seen::Claimed)];
    let stand_ins = prop_oneof![Just(Within::All), Just(Within::Some), Just(Within::None)];
    (seen, any::<bool>(), stand_ins, any::<bool>())
        .prop_map(|(seen, negated, stand_ins, insiders)| Condition { seen, negated, stand_ins, insiders })
}

/// The results that the data plane may reach for a client inside or outside of the ranges.
fn compared(condition: Condition, client: bool) -> Vec<bool> {
    match (condition.seen, condition.stand_ins) {
        (Seen::Client, _) => vec![client],
        (Seen::Claimed, _) | (Seen::StandIn, Within::Some) => vec![true, false],
        (Seen::StandIn, within) => vec![within == Within::All],
    }
}

proptest! {
    /// The verdict against what the data plane would do: for each client, inside or outside of each
    /// condition's ranges, whether it is admitted and whether it should be.
    #[test]
    fn a_verdict_is_what_the_answers_show(allow in any::<bool>(), conditions in prop::collection::vec(a_condition(), 1..4)) {
        let action = if allow { Action::Allow } else { Action::Deny };
        let (mut opened, mut closed) = (false, false);
        for client in 0..1_u32 << conditions.len() {
            let is_in = |place: usize| client >> place & 1 == 1;
            if conditions.iter().enumerate().any(|(place, condition)| condition.insiders && is_in(place)) {
                continue;
            }
            let should = conditions.iter().enumerate().all(|(place, condition)| is_in(place) != condition.negated) == allow;
            let may_be = |place: usize, wanted: bool| {
                let condition = conditions[place];
                compared(condition, is_in(place)).iter().any(|held| (*held != condition.negated) == wanted)
            };
            let all = || 0..conditions.len();
            // Nobody claims an address to be refused.
            let forced = || all().filter(|place| conditions[*place].seen != Seen::Claimed);
            let claims = forced().count() < conditions.len();
            let (admitted, refused) = if allow {
                (all().all(|place| may_be(place, true)), forced().any(|place| may_be(place, false)))
            } else {
                (all().any(|place| may_be(place, false)), !claims && all().all(|place| may_be(place, true)))
            };
            opened |= !should && admitted;
            closed |= should && refused;
        }
        let expected = match (opened, closed) {
            (true, _) => Verdict::Open,
            (false, true) => Verdict::Closed,
            (false, false) => Verdict::Right,
        };
        prop_assert_eq!(judge(action, &conditions), expected);
    }
}
