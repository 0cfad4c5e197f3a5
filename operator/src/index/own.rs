//! The objects that the operator fully owns, handled alike for all kinds.

use isp_plan::own::{Found, OwnKind};
use isp_plan::{Cluster, Key, cluster::Written, observe};
use isp_runtime::readiness::Readiness;
use kube::core::DynamicObject;
use kube::runtime::watcher::Event;

use super::News;
use super::reading::Reading;

/// The progress of each watch: one per name, or one for a whole kind.
pub(super) struct Readings(Vec<(OwnKind, Option<&'static str>, Reading<Key, Written>)>);

impl Readings {
    pub(super) fn new(readiness: &Readiness) -> Self {
        let watches = OwnKind::ALL.into_iter().flat_map(|kind| match kind.found() {
            Found::ByName(names) => names.iter().map(|name| (kind, Some(*name))).collect(),
            Found::ByPrefix(_) => vec![(kind, None)],
        });
        let reading = |(kind, name): (OwnKind, Option<&'static str>)| {
            // The API server may not serve kinds found by prefix, so readiness does not wait for
            // them.
            let pending = name.map(|_| readiness.register(kind.plural()));
            (kind, name, Reading::new(pending))
        };
        Self(watches.map(reading).collect())
    }

    /// The kinds that have not been listed yet.
    pub(super) fn missing(&self, cluster: &Cluster) -> impl Iterator<Item = &'static str> {
        let served = cluster.admission.serves_policies;
        let missing =
            self.0.iter().filter(move |(_, name, reading)| !reading.is_whole() && (name.is_some() || served));
        missing.map(|(kind, ..)| kind.plural())
    }

    pub(super) fn take(
        &mut self,
        cluster: &mut Cluster,
        kind: OwnKind,
        name: Option<&'static str>,
        event: Event<DynamicObject>,
    ) -> News {
        let Some(reading) = self.of(kind, |known| known == name) else { return News::Nothing };
        let known = cluster.own.entry(kind).or_default();
        let fact = |object: DynamicObject| {
            let name = object.metadata.name.as_deref().unwrap_or_default();
            kind.found().includes(name).then(|| observe::written(&object))
        };
        reading.take_among(known, event, key, fact, |key, _| name.is_none_or(|name| name == key.name))
    }

    pub(super) fn take_answer(
        &mut self,
        cluster: &mut Cluster,
        kind: OwnKind,
        object: &DynamicObject,
    ) -> News {
        let (key, fact) = (key(object), observe::written(object));
        let watched = |name: Option<&str>| name.is_none_or(|name| name == key.name);
        let Some(reading) = self.of(kind, watched) else { return News::Nothing };
        reading.take_answer(cluster.own.entry(kind).or_default(), key, fact, false)
    }

    fn of(
        &mut self,
        kind: OwnKind,
        is_meant: impl Fn(Option<&'static str>) -> bool,
    ) -> Option<&mut Reading<Key, Written>> {
        let found = self.0.iter_mut().find(|(known, name, _)| *known == kind && is_meant(*name));
        found.map(|(_, _, reading)| reading)
    }
}

fn key(object: &DynamicObject) -> Key {
    observe::key(&object.metadata)
}
