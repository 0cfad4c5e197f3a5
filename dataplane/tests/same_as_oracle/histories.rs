//! Services come, change and go; clients are remembered; agents start again.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
};

use isp_dataplane::{
    compile::compile,
    layout,
    model::{Node, Service, ServiceName, View},
    nft::{Data, Element, Family, Handle, Key, Operation, Table, Value},
    plane::Plane,
    ruleset::Ruleset,
    trace::trace,
};

use crate::{
    cases::{self, Dice},
    common, for_each_seed,
    oracle::{self, Seen},
};

/// A node with its Services and its kernel.
struct World {
    family: Family,
    node: Node,
    services: BTreeMap<Arc<ServiceName>, (Service, View)>,
    plane: Plane,
    kernel: Ruleset,
}

impl World {
    fn new(dice: &mut Dice, family: Family) -> Self {
        let node = cases::node(dice, family);
        let plane = Plane::new(common::settings(family), node.clone());
        let kernel = common::ruleset(&plane);
        Self { family, node, services: BTreeMap::new(), plane, kernel }
    }

    /// One change, as an agent carries it out.
    fn change(&mut self, dice: &mut Dice) {
        let number = u8::try_from(1 + dice.below(4)).unwrap();
        let name = common::name(&format!("s{number}"));
        match self.services.get_mut(&name) {
            Some(_) if dice.once_in(4) => {
                self.services.remove(&name);
            }
            Some((_, view)) if dice.once_in(6) => {
                *view = dice.of(&[View::Full, View::ClusterOnly, View::Hidden]);
            }
            Some((service, _)) if !dice.once_in(4) => change_endpoints(dice, service, self.family, number),
            _ => {
                // Sometimes a Service takes the ClusterIP and NodePorts of another.
                let like = if dice.once_in(6) { number % 4 + 1 } else { number };
                self.services
                    .insert(Arc::clone(&name), (cases::service(dice, self.family, like), View::Full));
            }
        }
        let plan = self
            .services
            .get(&name)
            .and_then(|(service, view)| compile(service, &self.node, *view, self.family));
        let sizes = self.sizes();
        let update = self.plane.set(&name, plan);
        self.kernel.commit(&update.now).unwrap();
        self.every_read_size_still_leads_to_endpoints(&sizes);
        assert!(self.plane.refused().is_empty());
        let forget: BTreeSet<_> = update.forget.into_iter().collect();
        let remembered = self.remembered();
        let gone =
            remembered.into_iter().filter(|each| forget.contains(&(handle(&each.key), target(&each.data))));
        self.kernel.commit(&gone.map(Operation::DeleteElement).collect::<Vec<_>>()).unwrap();
    }

    fn sweep(&mut self) {
        let swept = self.plane.sweep();
        self.kernel.commit(&swept).unwrap();
    }

    /// The agent starts again; a part of its predecessor's last work may be undone or unfinished.
    fn start_again(&mut self, dice: &mut Dice) {
        let mut dump = self.kernel.elements();
        if dice.once_in(2) {
            dump.retain(|_| !dice.once_in(10));
        }
        let mut plane = Plane::new(common::settings(self.family), self.node.clone());
        plane.adopt(&dump);
        let compiled = self.services.iter().filter_map(|(name, (service, view))| {
            Some((Arc::clone(name), compile(service, &self.node, *view, self.family)?))
        });
        plane.begin(compiled);
        // The table is replaced, because it may lack chains and have sets too many; what it had
        // stays.
        let table = plane.table();
        dump.retain(|element| table.set(&element.set).is_some());
        self.kernel = Ruleset::new(table, dump).unwrap();
        let repair = plane.repair(self.kernel.elements());
        self.kernel.commit(&repair).unwrap();
        let affinity = self.remembered();
        let gone: Vec<Operation> =
            plane.forgettable(&affinity).into_iter().cloned().map(Operation::DeleteElement).collect();
        self.kernel.commit(&gone).unwrap();
        self.plane = plane;
    }

    fn remembered(&self) -> Vec<Element> {
        self.kernel.elements().into_iter().filter(|each| each.set == layout::AFFINITY).collect()
    }

    /// Handles with the number of endpoints that a packet may have read.
    fn sizes(&self) -> Vec<(Handle, u32)> {
        let sizes = self.kernel.elements().into_iter().filter(|each| each.set == layout::SIZES);
        sizes
            .map(|each| match each.data {
                Data::Values(values) => match values.as_slice() {
                    [Value::Handle(with_count)] => (handle(&each.key), with_count.0 >> 20),
                    other => panic!("{other:?}"),
                },
                other => panic!("{other:?}"),
            })
            .collect()
    }

    fn every_read_size_still_leads_to_endpoints(&self, sizes: &[(Handle, u32)]) {
        for (handle, count) in sizes {
            for index in 0..*count {
                let key = [Value::Handle(*handle), Value::Index(index)];
                let found = self.kernel.find(&layout::ENDPOINTS, &key);
                assert!(found.is_some(), "{handle} with {count} endpoints has no endpoint {index} any more");
            }
        }
    }

    /// Clients connect; each outcome is one that the oracle allows, and is remembered.
    fn connect(&mut self, dice: &mut Dice) {
        let seen: Vec<Seen> = self
            .services
            .iter()
            .map(|(name, (service, view))| Seen {
                name: Arc::clone(name),
                service: service.clone(),
                view: *view,
            })
            .collect();
        for _ in 0..4 {
            let packet = cases::packet(dice, self.family);
            let allowed = oracle::outcomes(&seen, &self.node, &packet);
            let stories = trace(&self.kernel, &self.node.addresses, &packet).unwrap();
            for story in &stories {
                assert!(
                    allowed.contains(&story.outcome),
                    "{packet:?}: {allowed:?}\n{}",
                    story.tell(self.kernel.table()).join("\n")
                );
            }
            let story = &stories[dice.below(stories.len())];
            for element in &story.remembered {
                // As `update` does: of an element that exists, it renews the timeout only.
                if self.kernel.find(&element.set, &element.key).is_none() {
                    self.kernel.apply(&Operation::AddElement(element.clone())).unwrap();
                }
            }
            if !story.remembered.is_empty() {
                let again = trace(&self.kernel, &self.node.addresses, &packet).unwrap();
                let outcomes: Vec<_> = again.iter().map(|each| each.outcome).collect();
                assert_eq!(
                    outcomes,
                    [story.outcome],
                    "a remembered client gets another endpoint: {packet:?}"
                );
            }
        }
    }

    /// The kernel's elements as if compiled from nothing.
    fn equals_a_fresh_compile(&mut self) {
        self.sweep();
        let mut fresh = Plane::new(common::settings(self.family), self.node.clone());
        for (name, (service, view)) in &self.services {
            fresh.set(name, compile(service, &self.node, *view, self.family));
        }
        assert_eq!(canonical(&self.kernel.elements()), canonical(&fresh.elements()));
        assert_eq!(self.kernel.table().sets.len(), fresh.table().sets.len());
        let mut programmed = self.plane.elements();
        programmed.sort_unstable();
        let kernel: Vec<Element> =
            self.kernel.elements().into_iter().filter(|each| each.set != layout::AFFINITY).collect();
        assert_eq!(kernel, programmed);
    }
}

fn change_endpoints(dice: &mut Dice, service: &mut Service, family: Family, number: u8) {
    let fresh = cases::service(dice, family, number);
    let port = dice.below(service.ports.len());
    let endpoints = &mut service.ports[port].endpoints;
    let other = fresh.ports.into_iter().flat_map(|port| port.endpoints).next();
    match (other, dice.below(3)) {
        (Some(other), 0) => endpoints.push(other),
        (Some(other), 1) if !endpoints.is_empty() => {
            let place = dice.below(endpoints.len());
            endpoints[place] = other;
        }
        _ if !endpoints.is_empty() => {
            let place = dice.below(endpoints.len());
            endpoints.remove(place);
        }
        _ => {}
    }
}

fn handle(key: &Key) -> Handle {
    let found = key.iter().find_map(|value| match value {
        Value::Handle(handle) => Some(*handle),
        _ => None,
    });
    found.unwrap()
}

fn target(data: &Data) -> isp_dataplane::model::Target {
    match data {
        Data::Values(values) => match values.as_slice() {
            [Value::Address(address), Value::Port(port)] => {
                isp_dataplane::model::Target { address: *address, port: *port }
            }
            other => panic!("{other:?}"),
        },
        other => panic!("{other:?}"),
    }
}

/// Elements without what depends on history: identities become frontends, slots disappear.
fn canonical(elements: &[Element]) -> Vec<String> {
    let mut names: BTreeMap<u32, String> = BTreeMap::new();
    for each in elements.iter().filter(|each| each.set == layout::CLUSTER_IPS) {
        if let Data::Values(values) = &each.data
            && let [Value::Handle(handle)] = values.as_slice()
        {
            names.insert(handle.0 & !layout::LOCAL.0, format!("{:?}", each.key));
        }
    }
    let value = |value: &Value| match value {
        Value::Handle(handle) => {
            let name = names.get(&(handle.0 & layout::SET.0 & !layout::LOCAL.0));
            let name = name.unwrap_or_else(|| panic!("{handle} belongs to no frontend"));
            format!("{:x} {} {name}", handle.0 >> 20, handle.0 & layout::LOCAL.0 != 0)
        }
        Value::Index(_) => "index".to_owned(),
        other => format!("{other:?}"),
    };
    let own = elements.iter().filter(|each| each.set != layout::AFFINITY && each.set != layout::COUNTS);
    let mut all: Vec<String> = own
        .map(|each| {
            let key: Vec<String> = each.key.iter().map(value).collect();
            let data: Vec<String> = match &each.data {
                Data::Values(values) => values.iter().map(value).collect(),
                other => vec![format!("{other:?}")],
            };
            format!("{} {key:?} {:?} {data:?}", each.set, each.last)
        })
        .collect();
    all.sort_unstable();
    all
}

#[test]
fn every_history_ends_like_a_fresh_compile() {
    for_each_seed(20, |dice, family| {
        let mut world = World::new(dice, family);
        for _ in 0..20 {
            world.change(dice);
            if dice.once_in(3) {
                world.sweep();
            }
            world.connect(dice);
            if dice.once_in(12) {
                world.start_again(dice);
            }
        }
        world.equals_a_fresh_compile();
    });
}

#[test]
fn an_agent_that_starts_again_finds_everything_in_its_place() {
    for_each_seed(20, |dice, family| {
        let mut world = World::new(dice, family);
        for _ in 0..8 {
            world.change(dice);
        }
        world.sweep();
        let dump = world.kernel.elements();
        let mut plane = Plane::new(common::settings(family), world.node.clone());
        plane.adopt(&dump);
        // All at once, as an agent does: a Service that claims the frontend of an older one must
        // not have it in between.
        let compiled = world.services.iter().filter_map(|(name, (service, view))| {
            Some((name.clone(), compile(service, &world.node, *view, family)?))
        });
        plane.begin(compiled);
        assert_eq!(sorted(plane.table()), sorted(world.kernel.table().clone()));
        let repair = plane.repair(dump);
        assert_eq!(repair, []);
    });
}

/// A table with its parts in order of their names: they were added when they were needed.
fn sorted(mut table: Table) -> Table {
    table.sets.sort_by(|one, other| one.name.cmp(&other.name));
    table.chains.sort_by(|one, other| one.name.cmp(&other.name));
    for chain in &mut table.chains {
        chain.rules.sort_by_key(|rule| format!("{rule:?}"));
    }
    table
}
