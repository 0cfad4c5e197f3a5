//! Rules of every kind in the real kernel: `pod-redirect read` reads them from outside the pod, and
//! real connections go where the trace of what was read says.

#![allow(clippy::unwrap_used, clippy::panic, reason = "helpers of tests fail as tests do")]

mod sockets;
mod world;

use isp_pod_rules::explain::Mode;
use world::{OUTSIDE, POD, Rules, World};

/// From where a connection comes, and as whom.
const INBOUND: Option<(u32, u32)> = None;
const APPLICATION: Option<(u32, u32)> = Some((2000, 2000));
const USER: Option<(u32, u32)> = Some((1337, 2000));
const GROUP: Option<(u32, u32)> = Some((2000, 1337));

#[test]
fn connections_go_where_the_trace_says() {
    for rules in Rules::all() {
        let world = World::new(rules);
        let read = world.read();
        for family in 0..2 {
            let (pod, outside) = (POD[family], OUTSIDE[family]);
            for (who, to, port) in [
                (INBOUND, pod, 8080),
                (INBOUND, pod, 15021),
                (APPLICATION, outside, 9000),
                (USER, outside, 9000),
                (GROUP, outside, 9000),
                (APPLICATION, pod, 8080),
                (USER, pod, 8080),
                (APPLICATION, ["127.0.0.1", "::1"][family], 8080),
            ] {
                let traced = World::traced(&read, who, to, port);
                assert_eq!(traced, world.connect(who, to, port), "{rules}: {who:?} to {to}:{port}");
            }
        }
        assert_eq!(World::explained(&read), rules.mode(), "{rules}");
    }
}

#[test]
fn reading_leaves_a_namespace_as_it_was() {
    let world = World::new(Rules::None);
    let before = world.state();
    world.read();
    assert_eq!(world.state(), before);
    assert_eq!(World::explained(&world.read()), Mode::None);
}

#[test]
fn a_pod_that_is_not_on_the_node_is_an_error_that_says_what_was_searched() {
    let world = World::new(Rules::None);
    let said = world.read_of("10.1.0.99").unwrap_err();
    assert!(said.contains("none of the 2 network namespaces in /run/netns has the address"), "{said}");
}
