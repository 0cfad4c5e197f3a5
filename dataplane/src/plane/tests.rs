use super::*;
use crate::{
    compile::compile,
    layout,
    model::{Endpoint, LocalPods, NodePortAddresses, Service, ServicePort, TrafficPolicy, View},
    nft::{Data, Family, Protocol, Value},
    ruleset::Ruleset,
};

fn node() -> Node {
    Node {
        name: "n1".into(),
        zone: None,
        addresses: vec!["192.0.2.1".parse().unwrap()],
        local_pods: LocalPods::Unknown,
        node_port_addresses: NodePortAddresses::Primary,
        masquerade_all: false,
    }
}

fn name(name: &str) -> Arc<ServiceName> {
    Arc::new(ServiceName { namespace: "shop".to_owned(), name: name.to_owned() })
}

/// A Service whose ClusterIP and endpoints end in these numbers.
fn service(cluster_ip: u8, endpoints: &[u8]) -> Service {
    let endpoint = |last: &u8| Endpoint {
        target: Target { address: [10, 244, 0, *last].into(), port: 8080 },
        ready: true,
        serving: true,
        terminating: false,
        node: Some("n1".into()),
        zone_hints: Vec::new(),
        node_hints: Vec::new(),
    };
    let endpoints = endpoints.iter().map(endpoint).collect();
    Service {
        cluster_ips: vec![[10, 96, 0, cluster_ip].into()],
        external_ips: vec![[203, 0, 113, 7].into()],
        ports: vec![ServicePort { protocol: Protocol::Tcp, port: 80, node_port: None, endpoints }],
        ..Service::default()
    }
}

/// A plane and the kernel that its batches are committed to.
struct Programmed {
    plane: Plane,
    kernel: Ruleset,
}

impl Programmed {
    fn new() -> Self {
        let settings =
            Settings { table: Name::constant("t"), family: Family::Ip, ahead: 5, remembered_clients: 9 };
        let plane = Plane::new(settings, node());
        let kernel = Ruleset::new(plane.table(), plane.elements()).unwrap();
        Self { plane, kernel }
    }

    fn set(&mut self, service_name: &str, service: Option<&Service>) -> Update {
        let plan = service.and_then(|service| compile(service, &node(), View::Full, Family::Ip));
        let update = self.plane.set(&name(service_name), plan);
        self.kernel.commit(&update.now).unwrap();
        update
    }

    fn sweep(&mut self) -> Vec<Operation> {
        let swept = self.plane.sweep();
        self.kernel.commit(&swept).unwrap();
        swept
    }

    /// The handle of the external IP that all these Services claim.
    fn external(&self) -> Option<Data> {
        let key = [Value::Address([203, 0, 113, 7].into()), Value::Protocol(Protocol::Tcp), Value::Port(80)];
        self.kernel.find(&layout::EXTERNAL_IPS, &key).cloned()
    }

    fn cluster(&self, last: u8) -> Option<Data> {
        let key = [Value::Address([10, 96, 0, last].into()), Value::Protocol(Protocol::Tcp), Value::Port(80)];
        self.kernel.find(&layout::CLUSTER_IPS, &key).cloned()
    }
}

#[test]
fn of_two_services_with_one_external_ip_the_first_by_name_has_it_until_it_goes() {
    let (a, b) = (service(1, &[1]), service(2, &[2]));
    for order in [["a", "b"], ["b", "a"]] {
        let mut world = Programmed::new();
        for each in order {
            world.set(each, Some(if each == "a" { &a } else { &b }));
        }
        assert_eq!(world.external(), world.cluster(1));
        world.set("a", None);
        assert_eq!(world.external(), world.cluster(2));
        world.set("b", None);
        assert_eq!(world.external(), None);
        world.sweep();
        assert_eq!(world.kernel.elements(), Programmed { ..world }.leftover_rules());
    }
}

#[test]
fn of_two_services_with_one_external_ip_the_older_one_has_it_and_the_other_is_told() {
    let old = Service { created: 1, ..service(1, &[1]) };
    let new = Service { created: 2, ..service(2, &[2]) };
    for order in [["z", "a"], ["a", "z"]] {
        let mut world = Programmed::new();
        for each in order {
            world.set(each, Some(if each == "z" { &old } else { &new }));
        }
        assert_eq!(world.external(), world.cluster(1), "the older one, whatever its name");
        let told: Vec<_> = world.plane.contests().iter().map(ToString::to_string).collect();
        assert_eq!(told, ["external IP tcp 203.0.113.7:80 of shop/a belongs to the older Service shop/z"]);
        // A Service that is created again under its old name is new.
        world.set("z", Some(&Service { created: 3, ..old.clone() }));
        assert_eq!(world.external(), world.cluster(2));
        world.set("a", None);
        assert_eq!(world.external(), world.cluster(1));
        assert_eq!(world.plane.contests(), []);
    }
}

#[test]
fn ports_of_one_service_contest_nothing() {
    let mut both = service(1, &[1]);
    let second = ServicePort { port: 81, ..both.ports[0].clone() };
    both.ports.push(second);
    let mut world = Programmed::new();
    world.set("a", Some(&both));
    assert_eq!(world.plane.contests(), []);
}

impl Programmed {
    /// The elements that stay without any Service.
    fn leftover_rules(&self) -> Vec<Element> {
        let mut elements =
            rules::elements(&self.plane.settings, &self.plane.node, self.plane.in_use.provision());
        elements.sort_unstable();
        elements
    }
}

#[test]
fn a_service_that_takes_over_a_cluster_ip_before_the_old_one_is_gone_gets_it_then() {
    let mut world = Programmed::new();
    world.set("old", Some(&service(1, &[1])));
    world.set("zew", Some(&service(1, &[2])));
    let before = world.cluster(1);
    world.set("old", None);
    assert_eq!(world.cluster(1), before, "the port keeps its identity");
    let key = [Value::Handle(Handle(1)), Value::Index(0)];
    let endpoint = Data::Values(vec![Value::Address([10, 244, 0, 2].into()), Value::Port(8080)]);
    assert_eq!(world.kernel.find(&layout::ENDPOINTS, &key), Some(&endpoint));
}

#[test]
fn an_endpoint_that_comes_back_before_the_sweep_finds_its_slot() {
    let mut world = Programmed::new();
    world.set("a", Some(&service(1, &[1, 2])));
    world.set("a", Some(&service(1, &[1])));
    let update = world.set("a", Some(&service(1, &[1, 2])));
    let added = |operation: &Operation| matches!(operation, Operation::AddElement(each) if each.set == layout::ENDPOINTS);
    assert!(!update.now.iter().any(added), "{:?}", update.now);
    assert_eq!(world.sweep(), []);
}

#[test]
fn another_endpoint_in_the_slot_of_a_leftover_replaces_it() {
    let mut world = Programmed::new();
    world.set("a", Some(&service(1, &[1, 2])));
    world.set("a", Some(&service(1, &[1])));
    world.set("a", Some(&service(1, &[1, 3])));
    let key = [Value::Handle(Handle(1)), Value::Index(1)];
    let endpoint = Data::Values(vec![Value::Address([10, 244, 0, 3].into()), Value::Port(8080)]);
    assert_eq!(world.kernel.find(&layout::ENDPOINTS, &key), Some(&endpoint));
    let leftovers = world.sweep();
    assert!(
        leftovers
            .iter()
            .all(|each| !matches!(each, Operation::DeleteElement(each) if each.set == layout::ENDPOINTS))
    );
}

#[test]
fn an_identity_is_not_reused_before_the_sweep() {
    let mut world = Programmed::new();
    world.set("a", Some(&service(1, &[1])));
    let before = world.cluster(1);
    world.set("a", None);
    let identity = Identity::FIRST;
    assert!(world.plane.identities.is_taken(identity));
    world.set("a", Some(&service(1, &[1])));
    assert_ne!(world.cluster(1), before);
    world.sweep();
    assert!(!world.plane.identities.is_taken(identity));
}

#[test]
fn clients_of_a_removed_endpoint_are_forgotten_and_those_of_a_moved_one_are_not() {
    let sticky = |endpoints: &[u8], timeout| Service { affinity: timeout, ..service(1, endpoints) };
    let target = |last| Target { address: [10, 244, 0, last].into(), port: 8080 };
    let mut world = Programmed::new();
    world.set("a", Some(&sticky(&[1, 2, 3], Some(60))));
    assert_eq!(world.set("a", Some(&sticky(&[1, 3], Some(60)))).forget, [(Handle(1), target(2))]);
    assert_eq!(world.set("a", Some(&sticky(&[1, 3], Some(90)))).forget, [], "another timeout");
    let all = [(Handle(1), target(1)), (Handle(1), target(3))];
    assert_eq!(world.set("a", Some(&sticky(&[1, 3], None))).forget, all, "no affinity any more");
}

#[test]
fn the_rule_of_a_timeout_lives_as_long_as_a_port_uses_it() {
    let sticky = |cluster_ip, timeout| Service { affinity: timeout, ..service(cluster_ip, &[1]) };
    let mut world = Programmed::new();
    let empty = world.kernel.table().clone();
    world.set("a", Some(&sticky(1, Some(60))));
    world.set("b", Some(&sticky(2, Some(90))));
    world.set("b", Some(&sticky(2, Some(60))));
    world.set("a", None);
    let set = layout::remembered(60);
    assert!(world.kernel.table().set(&set).is_some());
    assert!(world.kernel.table().set(&layout::remembered(90)).is_none());
    world.set("b", None);
    assert_eq!(world.kernel.table().sets, empty.sets);
    let updates = |table: &Table| table.chain(&rules::AFFINITY_UPDATE).map(|chain| chain.rules.len());
    assert_eq!((updates(&empty), updates(world.kernel.table())), (Some(0), Some(0)));
}

#[test]
fn a_dump_of_nonsense_is_repaired() {
    let mut world = Programmed::new();
    world.set("a", Some(&service(1, &[1, 2])));
    let wanted = world.plane.elements();
    let strange = |set: Name, key: Key, data: Data| Element { set, key, last: None, data };
    let mut dump = wanted.clone();
    dump.truncate(3);
    dump.push(strange(
        layout::ENDPOINTS,
        vec![Value::Handle(Handle(77)), Value::Index(5)],
        Data::Values(Vec::new()),
    ));
    dump.push(strange(layout::STICKY, vec![Value::Handle(Handle::NONE)], Data::None));
    let mut kernel = Ruleset::new(world.plane.table(), dump.clone()).unwrap();
    let mut plane = Plane::new(world.plane.settings.clone(), node());
    plane.adopt(&dump);
    let plan = compile(&service(1, &[1, 2]), &node(), View::Full, Family::Ip);
    plane.set(&name("a"), plan);
    kernel.commit(&plane.repair(dump)).unwrap();
    kernel.commit(&plane.sweep()).unwrap();
    let mut wanted = plane.elements();
    wanted.sort_unstable();
    assert_eq!(kernel.elements(), wanted);
}

#[test]
fn a_local_policy_that_comes_and_goes_takes_its_set_along() {
    let with = |policy| Service { external_policy: policy, ..service(1, &[1]) };
    let mut world = Programmed::new();
    world.set("a", Some(&with(TrafficPolicy::Cluster)));
    let before = world.kernel.elements();
    world.set("a", Some(&with(TrafficPolicy::Local)));
    assert_eq!(world.external(), Some(Data::Values(vec![Value::Handle(Identity::FIRST.local())])));
    world.set("a", Some(&with(TrafficPolicy::Cluster)));
    world.sweep();
    assert_eq!(world.kernel.elements(), before);
}

#[test]
fn a_plane_that_begins_with_services_is_as_one_that_gets_them_one_by_one() {
    let sticky = Service { affinity: Some(60), created: 5, ..service(1, &[1, 2, 3]) };
    let all = [("a", service(2, &[1])), ("b", sticky), ("c", service(2, &[4, 5]))];
    let mut one_by_one = Programmed::new();
    for (name, service) in &all {
        one_by_one.set(name, Some(service));
    }
    let mut at_once = Programmed::new().plane;
    at_once.begin(
        all.iter()
            .map(|(each, service)| (name(each), compile(service, &node(), View::Full, Family::Ip).unwrap())),
    );
    let sorted = |mut elements: Vec<Element>| {
        elements.sort_unstable();
        elements
    };
    assert_eq!(sorted(at_once.elements()), sorted(one_by_one.plane.elements()));
    assert_eq!(at_once.table(), one_by_one.plane.table());
    assert_eq!(at_once.contests(), one_by_one.plane.contests());
}
