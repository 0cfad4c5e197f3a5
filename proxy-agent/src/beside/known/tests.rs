use serde_json::{Value, json};

use super::*;

fn label(key: &str, value: &str) -> ServiceLabel {
    ServiceLabel { key: key.to_owned(), value: value.to_owned() }
}

/// The part of a label key.
fn part(wanted: &Wanted, key: &str) -> Part {
    wanted.parts().into_iter().find(|part| part.key() == key).unwrap()
}

fn service(name: &str, label: &str) -> ServiceObject {
    serde_json::from_value(json!({
        "metadata": {"name": name, "namespace": "shop", "labels": {"keep": label}},
        "spec": {"clusterIP": "10.96.0.1", "clusterIPs": ["10.96.0.1"], "ports": [{"name": "http", "port": 80}]},
    }))
    .unwrap()
}

fn slice(name: &str, service: &str, addresses: &[&str]) -> EndpointSlice {
    let endpoints: Vec<Value> = addresses.iter().map(|address| json!({"addresses": [address]})).collect();
    serde_json::from_value(json!({
        "metadata": {"name": name, "namespace": "shop", "labels": {"kubernetes.io/service-name": service}},
        "addressType": "IPv4", "ports": [{"name": "http", "port": 8080}], "endpoints": endpoints,
    }))
    .unwrap()
}

fn listed<K>(objects: Vec<K>) -> impl Iterator<Item = Event<K>> {
    [Event::Init].into_iter().chain(objects.into_iter().map(Event::InitApply)).chain([Event::InitDone])
}

/// Knowledge of these Services, with slices of these names listed.
struct World {
    known: Known,
    services: ServiceListing,
    slices: SliceListing,
}

impl World {
    fn new(services: &[&str], covered: &[&str]) -> Self {
        let wanted = Wanted::Labelled([label("keep", "yes")].into());
        let covered = Covered::Named(covered.iter().map(|name| (*name).to_owned()).collect());
        let mut world = Self {
            known: Known::default(),
            services: ServiceListing::new(part(&wanted, "keep")),
            slices: SliceListing::new(covered),
        };
        for event in listed(services.iter().map(|name| service(name, "yes")).collect()) {
            world.known.fold_service(&mut world.services, event);
        }
        world
    }

    fn list_slices(&mut self, slices: Vec<EndpointSlice>) {
        for event in listed(slices) {
            self.known.fold_slice(&mut self.slices, event);
        }
    }

    fn changed(&mut self) -> Vec<String> {
        self.known.take_changed().iter().map(|name| name.name.clone()).collect()
    }

    fn endpoints(&self, name: &str) -> Option<Vec<String>> {
        let name = ServiceName { namespace: "shop".to_owned(), name: name.to_owned() };
        let service = self.known.with_endpoints(&name)?;
        Some(service.ports[0].endpoints.iter().map(|each| each.target.to_string()).collect())
    }
}

#[test]
fn a_service_counts_only_once_its_slices_are_listed() {
    let mut world = World::new(&["web"], &["web"]);
    assert!(!world.known.is_complete());
    assert_eq!(world.endpoints("web"), None, "without endpoints it would be rejected");
    world.list_slices(vec![slice("web-1", "web", &["10.244.1.5"])]);
    assert!(world.known.is_complete());
    assert_eq!(world.endpoints("web").unwrap(), ["10.244.1.5:8080"]);
    assert_eq!(world.changed(), ["web"]);

    world.known.fold_service(&mut world.services, Event::Apply(service("new", "yes")));
    assert!(!world.known.is_complete(), "the watch of slices does not cover it yet");
    assert_eq!(world.endpoints("new"), None);
    world.slices = SliceListing::new(Covered::Named(world.known.names().cloned().collect()));
    world.changed();
    world.list_slices(vec![slice("web-1", "web", &["10.244.1.5"]), slice("new-1", "new", &["10.244.1.6"])]);
    assert_eq!(world.changed(), ["new"], "the other one is as it was");
    assert_eq!(world.endpoints("new").unwrap(), ["10.244.1.6:8080"]);
}

#[test]
fn changes_touch_the_service_that_they_concern_and_nothing_else() {
    let mut world = World::new(&["web", "api"], &["web", "api"]);
    world.list_slices(vec![slice("web-1", "web", &["10.244.1.5"]), slice("api-1", "api", &["10.244.1.6"])]);
    world.changed();
    let mut apply = |slice: EndpointSlice| {
        world.known.fold_slice(&mut world.slices, Event::Apply(slice));
        world.known.take_changed().iter().map(|name| name.name.clone()).collect::<Vec<_>>()
    };
    assert_eq!(apply(slice("web-1", "web", &["10.244.1.5"])), [""; 0], "nothing new");
    assert_eq!(apply(slice("web-1", "web", &["10.244.1.7"])), ["web"]);
    assert_eq!(apply(slice("other", "unknown", &["10.244.9.9"])), [""; 0]);
    assert_eq!(apply(slice("web-1", "api", &["10.244.1.7"])), ["api", "web"], "the slice changed hands");
    assert_eq!(world.endpoints("web").unwrap(), [""; 0]);
    world.known.fold_slice(&mut world.slices, Event::Delete(slice("api-1", "api", &[])));
    assert_eq!(world.changed(), ["api"]);
    assert_eq!(world.endpoints("api").unwrap(), ["10.244.1.7:8080"]);
}

#[test]
fn a_service_that_loses_its_label_is_gone_whatever_the_watch_selects() {
    let mut world = World::new(&["web"], &["web"]);
    world.list_slices(vec![slice("web-1", "web", &["10.244.1.5"])]);
    world.changed();
    world.known.fold_service(&mut world.services, Event::Apply(service("web", "no")));
    assert_eq!(world.changed(), ["web"]);
    assert_eq!(world.endpoints("web"), None);
}

#[test]
fn a_new_list_replaces_everything_when_it_is_complete() {
    let mut world = World::new(&["web", "api"], &["web", "api"]);
    world.list_slices(vec![slice("web-1", "web", &["10.244.1.5"])]);
    world.changed();
    let mut events = listed(vec![service("api", "yes")]);
    for event in events.by_ref().take(2) {
        world.known.fold_service(&mut world.services, event);
    }
    assert_eq!(world.endpoints("web").unwrap(), ["10.244.1.5:8080"], "the list is not complete yet");
    events.for_each(|event| world.known.fold_service(&mut world.services, event));
    assert_eq!(world.changed(), ["web"]);
    assert_eq!(world.endpoints("web"), None);
}

#[test]
fn labels_of_one_key_are_selected_by_the_api_server() {
    let selectors = |labels: &[(&str, &str)]| -> Vec<_> {
        let wanted = Wanted::Labelled(labels.iter().map(|(key, value)| label(key, value)).collect());
        wanted.parts().iter().map(|part| part.selector().unwrap()).collect()
    };
    assert_eq!(selectors(&[("a", "1"), ("a", "2")]), ["a in (1,2)", SERVICE_LABEL]);
    assert_eq!(
        selectors(&[("a", "1"), ("b", "2")]),
        ["a in (1)", "b in (2)", SERVICE_LABEL],
        "a selector cannot say or"
    );
    assert_eq!(selectors(&[]), [SERVICE_LABEL], "Services may have lost their object");
    assert_eq!(Wanted::All.parts(), [Part::default()]);
    assert_eq!(Part::default().selector(), None);
}

#[test]
fn of_the_services_with_the_default_label_those_of_objects_and_those_that_depend_on_the_agent_are_kept() {
    let wanted = Wanted::Labelled([label(SERVICE_LABEL, "web")].into());
    let marked = |name: &str, value: &str, more: Value, record: &str| -> ServiceObject {
        let mut object = service(name, "no");
        let labels = object.metadata.labels.as_mut().unwrap();
        labels.insert(SERVICE_LABEL.to_owned(), value.to_owned());
        labels.extend(serde_json::from_value::<BTreeMap<_, _>>(more).unwrap());
        object.metadata.annotations =
            Some([("sourcepreserve.io/original".to_owned(), record.to_owned())].into());
        object
    };
    let taken_over = json!({"service.kubernetes.io/service-proxy-name": "ingress-source-preserve"});
    let other = json!({"service.kubernetes.io/service-proxy-name": "other"});
    let objects = vec![
        marked("of-object", "web", json!({}), ""),
        marked("of-another", "gone", json!({}), r#"{"object": "gone"}"#),
        marked("taken-over", "gone", taken_over, "no record"),
        marked("of-another-proxy", "gone", other, "null"),
        marked("given-back", "gone", json!({}), r#"{"object": "gone", "skipped": true}"#),
    ];
    let (mut known, mut listing) = (Known::default(), ServiceListing::new(part(&wanted, SERVICE_LABEL)));
    for event in listed(objects) {
        known.fold_service(&mut listing, event);
    }
    let names: Vec<&str> = known.names().map(String::as_str).collect();
    assert_eq!(names, ["given-back", "of-object", "taken-over"]);
}

#[test]
fn a_service_of_two_watches_is_gone_once_neither_has_it() {
    let mut world = World::new(&["web"], &["web"]);
    world.list_slices(vec![slice("web-1", "web", &["10.244.1.5"])]);
    let other = Wanted::Labelled([label("other", "yes")].into());
    let mut other = ServiceListing::new(part(&other, "other"));
    let mut both = service("web", "yes");
    both.metadata.labels.as_mut().unwrap().insert("other".to_owned(), "yes".to_owned());
    for event in listed(vec![both.clone()]) {
        world.known.fold_service(&mut other, event);
    }
    world.known.fold_service(&mut world.services, Event::Delete(service("web", "yes")));
    assert!(world.endpoints("web").is_some());
    world.known.fold_service(&mut other, Event::Delete(both.clone()));
    assert!(world.endpoints("web").is_none());

    world.known.fold_service(&mut other, Event::Apply(both));
    world.known.keep_watches(&["keep"].into());
    assert!(world.endpoints("web").is_none(), "its watch has ended");
}

#[test]
fn a_slice_of_another_namespace_is_not_ours_whatever_its_label_says() {
    let mut world = World::new(&["web"], &["web"]);
    world.list_slices(vec![slice("web-1", "web", &["10.244.1.5"])]);
    world.changed();
    let mut foreign = slice("web-1", "web", &["10.244.6.6"]);
    foreign.metadata.namespace = Some("other".to_owned());
    world.known.fold_slice(&mut world.slices, Event::Apply(foreign.clone()));
    assert_eq!(world.changed(), [""; 0]);
    assert_eq!(world.endpoints("web").unwrap(), ["10.244.1.5:8080"]);
    world.known.fold_slice(&mut world.slices, Event::Delete(foreign));
    assert_eq!(world.changed(), [""; 0], "its name is that of ours");
    assert_eq!(world.endpoints("web").unwrap(), ["10.244.1.5:8080"]);
}

#[test]
fn while_the_api_server_is_away_and_lists_again_nothing_changes() {
    let mut world = World::new(&["web", "api"], &["web", "api"]);
    let slices = || vec![slice("web-1", "web", &["10.244.1.5"]), slice("api-1", "api", &["10.244.1.6"])];
    world.list_slices(slices());
    world.changed();
    // The list begins, breaks off, and begins again.
    for event in [Event::Init, Event::InitApply(service("web", "yes")), Event::Init] {
        world.known.fold_service(&mut world.services, event);
    }
    world.known.fold_slice(&mut world.slices, Event::Init);
    assert!(world.known.is_complete());
    assert_eq!(world.changed(), [""; 0]);
    for event in listed(vec![service("web", "yes"), service("api", "yes")]) {
        world.known.fold_service(&mut world.services, event);
    }
    world.list_slices(slices());
    assert_eq!(world.changed(), [""; 0], "the same as before");
    assert!(world.known.is_complete());
}
