use super::*;
use crate::netlink::message::Messages;

fn delivery(family: Family) -> LocalDelivery {
    LocalDelivery { family, routing: Routing::DEFAULT }
}

/// The kernel answers a query with the attributes of the request that added the object.
fn found(request: Request, written: &LocalDelivery, wanted: &LocalDelivery) -> FoundRouting {
    let mut found = FoundRouting::default();
    for message in Messages(&request.write(written, 1)) {
        found.read(message.unwrap(), wanted).unwrap();
    }
    found
}

#[test]
fn the_rule_and_the_route_are_found_as_they_were_written() {
    for family in Family::ALL {
        let ours = delivery(family);
        assert_eq!(found(Request::AddRule, &ours, &ours), FoundRouting { rule: true, route: false });
        assert_eq!(found(Request::AddRoute, &ours, &ours), FoundRouting { rule: false, route: true });
    }
}

#[test]
fn a_rule_or_route_with_another_mark_table_or_family_is_not_ours() {
    let ours = delivery(Family::Ip);
    let mut others = [ours, ours, delivery(Family::Ip6)];
    others[0].routing.table = 133;
    others[1].routing.mark.mask = u32::MAX;
    for other in others {
        assert!(!found(Request::AddRule, &other, &ours).rule, "{other:?}");
    }
    for other in [others[0], others[2]] {
        assert!(!found(Request::AddRoute, &other, &ours).route, "{other:?}");
    }
}

#[test]
fn bytes_that_end_within_the_header_are_refused() {
    let bytes = Request::AddRule.write(&delivery(Family::Ip), 1);
    let mut message = Messages(&bytes).next().unwrap().unwrap();
    message.body = &message.body[..HEADER - 1];
    let read = FoundRouting::default().read(message, &delivery(Family::Ip));
    assert_eq!(read, Err(Malformed::Message));
}
