//! A cluster with one Service, `web/frontend`, and one object for it, `web`.

use isp_api::conditions::find;
use isp_api::preserve::{Phase, ServiceState};
use serde_json::{Value, json};

use super::world::{INGRESS, World};
use crate::action::{Action, Resource, without_revision};
use crate::cluster::Key;
use crate::own::OwnKind;

pub(super) fn web() -> Key {
    Key::new("web", "frontend")
}

pub(super) fn spec(more: Value) -> Value {
    let mut spec = json!({
        "ingressNodes": {"selector": {"matchLabels": {INGRESS: ""}}},
        "services": [{"namespace": "web", "name": "frontend"}],
        "rollout": {"maxUnavailable": 1},
    });
    if let (Some(fields), Value::Object(more)) = (spec.as_object_mut(), more) {
        fields.extend(more);
    }
    spec
}

/// An ingress node with an endpoint, two non-ingress nodes, and a Service made by `kubectl create`.
pub(super) fn world() -> World {
    let mut world = World::new(&[("edge", &[(INGRESS, "")]), ("work-1", &[]), ("work-2", &[])]);
    world.add_service(&web(), "kubectl-create");
    world.set_endpoints(&web(), "edge", 1);
    world
}

pub(super) fn with_object(more: Value) -> World {
    let mut world = world();
    world.add_object("web", &spec(more));
    world
}

/// All actions until nothing is left to do, except status writes. Of the agents' account and RBAC
/// only the ServiceAccount is listed.
pub(super) fn story(world: &mut World) -> Vec<String> {
    let mut told = Vec::new();
    world.settle(|_, action| {
        let is_a_right = ["agent-account", "agent-policy"].iter().any(|end| action.kind().ends_with(end))
            && action.target().resource != Resource::Own(OwnKind::Account);
        if !matches!(action, Action::Status { .. }) && !is_a_right {
            told.push(without_revision(&action.to_string()).to_owned());
        }
    });
    told
}

pub(super) fn phase(world: &World) -> Phase {
    world.cluster.objects["web"].status.as_ref().unwrap().phase.unwrap()
}

pub(super) fn condition(world: &World, type_: &str) -> (String, String, String) {
    let status = world.cluster.objects["web"].status.as_ref().unwrap();
    let found = find(&status.conditions, type_).unwrap();
    (found.status.clone(), found.reason.clone(), found.message.clone())
}

pub(super) fn state(world: &World) -> ServiceState {
    world.cluster.objects["web"].status.as_ref().unwrap().services[0].state
}

pub(super) fn ready() -> World {
    let mut world = with_object(json!({}));
    world.settle(|_, _| {});
    assert_eq!(phase(&world), Phase::Ready);
    world
}
