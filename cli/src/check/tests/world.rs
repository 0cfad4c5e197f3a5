//! Dumps of a real cluster as worlds for `check`.

use std::collections::BTreeSet;

use isp_plan::Key;
use serde_json::{Value, json};

use crate::check::line::State;
use crate::check::{Check, check};
use crate::doctor::finding::Code;
pub(super) use crate::doctor::tests::world::World;

/// A cluster on which every exposed Service keeps the source IP, one by an object and one by hand.
pub(super) fn sound() -> World {
    let mut world = World::of("healthy");
    world.the("Service", "echo")["spec"]["externalTrafficPolicy"] = json!("Local");
    world
}

pub(super) fn checked(world: &World) -> Check {
    of_service(world, None)
}

pub(super) fn of_service(world: &World, service: Option<&Key>) -> Check {
    let (cluster, now) = world.read_later();
    check(&cluster, service, now)
}

/// The codes of the lines that did not pass.
pub(super) fn codes(check: &Check) -> BTreeSet<Code> {
    check.lines().filter(|line| line.state != State::Passed).filter_map(|line| line.code).collect()
}

/// The lines of one check.
pub(super) fn lines(check: &Check, name: &str) -> Vec<String> {
    check.lines().filter(|line| line.check == name).map(|line| line.text.clone()).collect()
}

pub(super) fn node<'a>(world: &'a mut World, name: &str) -> &'a mut Value {
    world.the("Node", name)
}
