use isp_api::IngressSourcePreserve;
use isp_api::validate::NodeIdentity;
use isp_api::view::view;
use k8s_openapi::api::core::v1::Service as ServiceObject;
use k8s_openapi::api::discovery::v1::EndpointSlice;
use kube::runtime::watcher::Event;
use serde_json::{Value, json};

use super::*;
use crate::beside::known::{Covered, Part, ServiceListing, SliceListing};
use crate::fixtures::preserve;
use crate::node::view::ViewStore;

const LABEL: &str = "sourcepreserve.io/preserve";

fn service(name: &str, label: &str) -> ServiceObject {
    serde_json::from_value(json!({
        "metadata": {"name": name, "namespace": "shop", "labels": {LABEL: label}},
        "spec": {"clusterIP": "10.96.0.1", "clusterIPs": ["10.96.0.1"], "ports": [{"name": "http", "port": 80}]},
    }))
    .unwrap()
}

fn slice(service: &str, address: &str) -> EndpointSlice {
    serde_json::from_value(json!({
        "metadata": {"name": format!("{service}-1"), "namespace": "shop", "labels": {"kubernetes.io/service-name": service}},
        "addressType": "IPv4", "ports": [{"name": "http", "port": 8080}], "endpoints": [{"addresses": [address]}],
    }))
    .unwrap()
}

/// The watches and the decisions of an agent.
struct Agent {
    known: Known,
    services: ServiceListing,
    slices: SliceListing,
    serving: Serving,
    is_synchronized: bool,
}

impl Agent {
    fn new(scope: Scope, services: impl IntoIterator<Item = ServiceObject>) -> Self {
        let mut agent = Self {
            known: Known::default(),
            services: ServiceListing::new(Part::default()),
            slices: SliceListing::new(Covered::All),
            serving: Serving::default(),
            is_synchronized: false,
        };
        agent.serving.follow(scope, Preserved::default());
        let all = services.into_iter().map(Event::InitApply);
        for event in [Event::Init].into_iter().chain(all).chain([Event::InitDone]) {
            agent.known.fold_service(&mut agent.services, event);
        }
        for event in [Event::Init, Event::InitDone] {
            agent.known.fold_slice(&mut agent.slices, event);
        }
        agent
    }

    fn apply(&mut self, service: ServiceObject) {
        self.known.fold_service(&mut self.services, Event::Apply(service));
    }

    fn delete(&mut self, service: ServiceObject) {
        self.known.fold_service(&mut self.services, Event::Delete(service));
    }

    fn slice(&mut self, slice: EndpointSlice) {
        self.known.fold_slice(&mut self.slices, Event::Apply(slice));
    }

    fn objects(&mut self, scope: Scope, objects: &[IngressSourcePreserve]) {
        let store = ViewStore::default();
        let node = NodeIdentity { name: "n", labels: &BTreeMap::new() };
        store.publish(view(node, objects), objects);
        self.serving.follow(scope, Preserved::of(&store.current().unwrap()));
    }

    /// What comes next, as text: `!` before everything, `-` before a Service that goes.
    fn next(&mut self) -> String {
        let next = self.serving.next(&mut self.known, self.is_synchronized);
        self.is_synchronized = true;
        let names: Vec<String> = match &next {
            Next::Everything(all) => {
                ["!".to_owned()].into_iter().chain(all.iter().map(|(name, _)| name.name.clone())).collect()
            }
            Next::Some(changes) => {
                let sign = |served: &Option<Served>| if served.is_some() { "" } else { "-" };
                changes.iter().map(|(name, served)| format!("{}{}", sign(served), name.name)).collect()
            }
            Next::Nothing => Vec::new(),
        };
        names.join(" ")
    }

    /// How many Services the next step looks at.
    fn work(&mut self) -> u64 {
        let before = self.serving.looked_at();
        let next = self.next();
        assert!(!next.starts_with('!'), "{next}");
        self.serving.looked_at() - before
    }
}

/// An object that targets these Services by name.
fn object(name: &str, services: &[&str]) -> IngressSourcePreserve {
    let services: Vec<Value> =
        services.iter().map(|name| json!({"namespace": "shop", "name": name})).collect();
    preserve(name, json!({"mode": "Beside", "services": services}))
}

#[test]
fn a_change_costs_what_its_service_costs_and_not_what_the_cluster_has() {
    for number in [10, 50_000] {
        let services = (0..number).map(|index| service(&format!("s{index}"), "no"));
        let mut agent = Agent::new(Scope::All, services);
        agent.next();
        assert_eq!(agent.serving.looked_at(), number, "the first time, all of them");

        agent.slice(slice("s7", "10.244.0.1"));
        assert_eq!(agent.work(), 1, "an endpoint, of {number} Services");
        agent.apply(service("new", "no"));
        assert_eq!(agent.work(), 1, "a Service");
        agent.delete(service("new", "no"));
        assert_eq!(agent.work(), 1, "a Service that goes");
        agent.slice(slice("unknown", "10.244.0.1"));
        assert_eq!(agent.work(), 0, "a slice of no Service");
        agent.objects(Scope::All, &[object("a", &["s1"])]);
        assert_eq!(agent.work(), number, "another object: all of them");
    }
}

#[test]
fn the_first_service_creates_the_tables_and_the_last_one_takes_them_along() {
    let mut agent = Agent::new(Scope::Preserved, []);
    agent.objects(Scope::Preserved, &[object("a", &["web", "api"])]);
    assert_eq!(agent.next(), "!", "tables of an earlier agent go");
    agent.apply(service("web", "a"));
    assert_eq!(agent.next(), "! web");
    agent.apply(service("api", "a"));
    assert_eq!(agent.next(), "api");
    agent.apply(service("web", "none"));
    assert_eq!(agent.next(), "-web");
    agent.apply(service("api", "none"));
    assert_eq!(agent.next(), "!");
    agent.apply(service("api", "a"));
    assert_eq!(agent.next(), "! api", "and they come back");
}

#[test]
fn services_follow_the_objects() {
    let mut agent = Agent::new(Scope::Preserved, [service("web", "a"), service("api", "b")]);
    assert_eq!(agent.next(), "!", "labels without objects mean nothing");
    agent.objects(Scope::Preserved, &[object("a", &["web"])]);
    assert_eq!(agent.next(), "! web");
    agent.objects(Scope::Preserved, &[object("a", &["web"]), object("b", &["api"])]);
    assert_eq!(agent.next(), "api", "the other one is as it was");
    agent.objects(Scope::Preserved, &[object("b", &["api"])]);
    assert_eq!(agent.next(), "-web");
    agent.slice(slice("web", "10.244.0.1"));
    assert_eq!(agent.next(), "", "an endpoint of a Service that is not served");
    agent.objects(Scope::Preserved, &[]);
    assert_eq!(agent.next(), "!");
}

#[test]
fn a_service_that_lost_its_object_is_served_until_kube_proxies_serve_it() {
    let with = |labels: Value, record: &str| -> ServiceObject {
        let mut object = service("web", "a");
        object
            .metadata
            .labels
            .as_mut()
            .unwrap()
            .extend(serde_json::from_value::<BTreeMap<String, String>>(labels).unwrap());
        object.metadata.annotations =
            Some([("sourcepreserve.io/original".to_owned(), record.to_owned())].into());
        object
    };
    let name = json!({"service.kubernetes.io/service-proxy-name": "ingress-source-preserve"});
    let taken_over = || with(name.clone(), r#"{"object": "a", "skipped": true}"#);
    let mut agent = Agent::new(Scope::Preserved, [taken_over()]);
    assert_eq!(agent.next(), "!", "everyone who may write Services can write this");
    agent.objects(Scope::Preserved, &[object("a", &["web"])]);
    assert_eq!(agent.next(), "! web");
    agent.objects(Scope::Preserved, &[]);
    assert_eq!(agent.next(), "web", "in full from now on");
    agent.is_synchronized = false;
    assert_eq!(agent.next(), "! web", "also after a failure");
    agent.apply(with(json!({}), r#"{"object": "a", "skipped": true}"#));
    assert_eq!(agent.next(), "web", "kube-proxies may not serve it yet");
    agent.apply(with(json!({}), r#"{"object": "a"}"#));
    assert_eq!(agent.next(), "!");
    agent.apply(taken_over());
    assert_eq!(agent.next(), "", "it does not come back");

    let mut successor = Agent::new(Scope::Preserved, [taken_over(), service("api", "a")]);
    successor.serving.succeed(["10.96.0.1".parse().unwrap()].into());
    assert_eq!(successor.next(), "! web", "the agent before this one served it");
    assert_eq!(successor.next(), "");
    let mut other = service("later", "a");
    other.metadata.labels = taken_over().metadata.labels;
    successor.apply(other);
    assert_eq!(successor.next(), "", "nothing is inherited after the start");
}

#[test]
fn after_a_failure_everything_is_written_again() {
    let mut agent = Agent::new(Scope::All, [service("web", "a"), service("api", "a")]);
    agent.next();
    agent.slice(slice("web", "10.244.0.1"));
    agent.is_synchronized = false;
    assert_eq!(agent.next(), "! api web");
    assert_eq!(agent.next(), "");
}
