//! Compares the narrowed bytes with an independent writer and reader of the messages that matter.

use std::collections::BTreeMap;

use proptest::prelude::*;

use hyper::body::Bytes;

use super::super::{BodyKind, Format, Narrower, StreamSummary, WireError};
use crate::fixtures::narrowing;

#[derive(Debug, Clone, PartialEq, Eq, Default)]
struct Service {
    name: String,
    labels: BTreeMap<String, String>,
    annotations: BTreeMap<String, String>,
    external_ips: Vec<String>,
    ingress: Vec<String>,
    /// Content of every message that must stay the same.
    noise: Vec<u8>,
}

fn varint(mut value: u64) -> Vec<u8> {
    let mut out = Vec::new();
    while value >= 0x80 {
        out.push(u8::try_from(value & 0x7f).unwrap() | 0x80);
        value >>= 7;
    }
    out.push(u8::try_from(value).unwrap());
    out
}

fn field(number: u64, content: &[u8]) -> Vec<u8> {
    [varint(number << 3 | 2), varint(content.len() as u64), content.to_vec()].concat()
}

fn number(field: u64, value: u64) -> Vec<u8> {
    [varint(field << 3), varint(value)].concat()
}

fn map(number: u64, entries: &BTreeMap<String, String>) -> Vec<u8> {
    let entry = |(key, value): (&String, &String)| {
        field(number, &[field(1, key.as_bytes()), field(2, value.as_bytes())].concat())
    };
    entries.iter().flat_map(entry).collect()
}

impl Service {
    fn write(&self) -> Vec<u8> {
        let meta = [
            field(1, self.name.as_bytes()),
            number(7, 3_000_000_000),
            map(11, &self.labels),
            map(12, &self.annotations),
            field(17, &self.noise),
        ]
        .concat();
        let spec = [
            field(1, &self.noise),
            field(3, b"10.96.0.7"),
            self.external_ips.iter().flat_map(|ip| field(5, ip.as_bytes())).collect(),
            field(11, b"Local"),
            number(12, 31234),
            field(18, b"10.96.0.7"),
        ]
        .concat();
        let balancer: Vec<u8> =
            self.ingress.iter().flat_map(|ip| field(1, &field(1, ip.as_bytes()))).collect();
        let status = [field(1, &balancer), field(2, &self.noise)].concat();
        [field(1, &meta), field(2, &spec), field(3, &status)].concat()
    }

    fn read(bytes: &[u8]) -> Self {
        let text = |bytes: &[u8]| String::from_utf8(bytes.to_vec()).unwrap();
        let strings = |bytes: &[u8]| {
            let parts = fields(bytes);
            (text(&parts[0].1), text(&parts[1].1))
        };
        let mut service = Self::default();
        for (part, content) in fields(bytes) {
            for (number, inner) in fields(&content) {
                match (part, number) {
                    (1, 1) => service.name = text(&inner),
                    (1, 11) => service.labels.extend([strings(&inner)]),
                    (1, 12) => service.annotations.extend([strings(&inner)]),
                    (1, 17) => service.noise = inner,
                    (2, 5) => service.external_ips.push(text(&inner)),
                    (3, 1) => {
                        let ingress = fields(&inner).into_iter().filter(|(number, _)| *number == 1);
                        service.ingress = ingress.map(|(_, item)| text(&fields(&item)[0].1)).collect();
                    }
                    _ => {}
                }
            }
        }
        service
    }

    fn without_addresses(mut self) -> Self {
        self.external_ips.clear();
        self.ingress.clear();
        self
    }
}

/// Returns the fields of a message, numbers as their bytes.
fn fields(mut bytes: &[u8]) -> Vec<(u64, Vec<u8>)> {
    fn take(bytes: &mut &[u8]) -> u64 {
        let (mut value, mut bits) = (0, 0);
        loop {
            let byte = bytes[0];
            *bytes = &bytes[1..];
            value |= u64::from(byte & 0x7f) << bits;
            bits += 7;
            if byte < 0x80 {
                return value;
            }
        }
    }
    let mut found = Vec::new();
    while !bytes.is_empty() {
        let tag = take(&mut bytes);
        let content = if tag.is_multiple_of(8) {
            take(&mut bytes).to_be_bytes().to_vec()
        } else {
            let length = usize::try_from(take(&mut bytes)).unwrap();
            let (content, rest) = bytes.split_at(length);
            bytes = rest;
            content.to_vec()
        };
        found.push((tag >> 3, content));
    }
    found
}

fn envelope(kind: &str, object: &[u8]) -> Vec<u8> {
    let type_meta = [field(1, b"v1"), field(2, kind.as_bytes())].concat();
    [&b"k8s\0"[..], &field(1, &type_meta), &field(2, object), &field(3, b""), &field(4, b"")].concat()
}

fn list(services: &[Service]) -> Vec<u8> {
    let items: Vec<u8> = services.iter().flat_map(|service| field(2, &service.write())).collect();
    envelope("ServiceList", &[field(1, &field(2, b"4711")), items].concat())
}

fn event(kind: &str, object: &[u8]) -> Vec<u8> {
    let event = [field(1, kind.as_bytes()), field(2, &field(1, object))].concat();
    [u32::try_from(event.len()).unwrap().to_be_bytes().to_vec(), event].concat()
}

fn read_list(bytes: &[u8]) -> Vec<Service> {
    assert_eq!(&bytes[..4], b"k8s\0");
    let list = fields(&bytes[4..]).into_iter().find(|(number, _)| *number == 2).unwrap().1;
    let items = fields(&list).into_iter().filter(|(number, _)| *number == 2);
    items.map(|(_, item)| Service::read(&item)).collect()
}

fn read_events(mut bytes: &[u8]) -> Vec<Service> {
    let mut found = Vec::new();
    while !bytes.is_empty() {
        let length = usize::try_from(u32::from_be_bytes(bytes[..4].try_into().unwrap())).unwrap();
        let event = fields(&bytes[4..4 + length]);
        let object = fields(&event[1].1)[0].1.clone();
        let raw = fields(&object[4..]).into_iter().find(|(number, _)| *number == 2).unwrap().1;
        found.push(Service::read(&raw));
        bytes = &bytes[4 + length..];
    }
    found
}

fn is_narrowed(service: &Service) -> bool {
    let has = |key: &str, value: &str| service.labels.get(key).is_some_and(|found| found == value);
    has("a", "1") || has("b", "2")
}

/// Feeds the bytes in pieces of these sizes, repeatedly.
fn scan(kind: BodyKind, bytes: Vec<u8>, sizes: &[usize]) -> Result<(Vec<u8>, StreamSummary), WireError> {
    let mut narrower = Narrower::new(Format::Protobuf, kind, narrowing(), true);
    let (mut rest, mut out) = (Bytes::from(bytes), Vec::new());
    let mut sizes = sizes.iter().cycle();
    while !rest.is_empty() {
        let size = (*sizes.next().unwrap()).clamp(1, rest.len());
        out.extend_from_slice(&narrower.feed(rest.split_to(size))?);
    }
    Ok((out, narrower.summary()))
}

prop_compose! {
    fn service()(
        name in "[a-z]{1,12}",
        labels in prop::collection::btree_map("[abc]", "[12]", 0..3),
        annotations in prop::collection::btree_map("[a-z]{1,6}", "[a-z]{0,300}", 0..3),
        external_ips in prop::collection::vec("[0-9a-f.:]{3,39}", 0..4),
        ingress in prop::collection::vec("[0-9a-f.:]{3,39}", 0..4),
        noise in prop::collection::vec(any::<u8>(), 0..200),
    ) -> Service {
        Service { name, labels, annotations, external_ips, ingress, noise }
    }
}

fn expected(services: &[Service]) -> Vec<Service> {
    let one = |service: &Service| {
        if is_narrowed(service) { service.clone().without_addresses() } else { service.clone() }
    };
    services.iter().map(one).collect()
}

proptest! {
    #[test]
    fn narrowed_services_lose_their_addresses_and_nothing_else_however_the_list_is_split(
        services in prop::collection::vec(service(), 0..12),
        sizes in prop::collection::vec(1_usize..700, 1..8),
    ) {
        let bytes = list(&services);
        let (after, seen) = scan(BodyKind::List, bytes.clone(), &sizes).unwrap();
        prop_assert_eq!(after.len(), bytes.len());
        prop_assert_eq!(read_list(&after), expected(&services));
        prop_assert_eq!(seen.services, services.len() as u64);
        let narrowed = services.iter().filter(|service| is_narrowed(service));
        prop_assert_eq!(seen.narrowed, narrowed.clone().count() as u64);
        let changed = bytes.iter().zip(&after).filter(|(before, after)| before != after).count();
        let addresses: usize = narrowed.map(|service| service.external_ips.len() + service.ingress.len()).sum();
        prop_assert_eq!(changed, addresses);
    }

    #[test]
    fn a_watch_is_narrowed_event_by_event_however_it_is_split(
        services in prop::collection::vec(service(), 1..12),
        kinds in prop::collection::vec(prop::sample::select(vec!["ADDED", "MODIFIED", "DELETED"]), 12),
        sizes in prop::collection::vec(1_usize..700, 1..8),
    ) {
        let events = services.iter().zip(&kinds);
        let bytes: Vec<u8> = events.flat_map(|(service, kind)| event(kind, &envelope("Service", &service.write()))).collect();
        let (after, seen) = scan(BodyKind::Watch, bytes, &sizes).unwrap();
        prop_assert_eq!(read_events(&after), expected(&services));
        prop_assert_eq!(seen.services, services.len() as u64);
    }

    #[test]
    fn any_bytes_are_scanned_or_refused_and_never_more_than_tags_are_changed(
        bytes in prop::collection::vec(any::<u8>(), 0..400),
        watch in any::<bool>(),
        size in 1_usize..64,
    ) {
        let body = if watch { BodyKind::Watch } else { BodyKind::List };
        let whole = scan(body, bytes.clone(), &[usize::MAX]);
        let split = scan(body, bytes, &[size]);
        prop_assert_eq!(whole, split);
    }
}

#[test]
fn ten_million_bytes_in_random_pieces_come_out_as_in_one() {
    let services: Vec<Service> = (0..4000)
        .map(|index| Service {
            name: format!("service-{index}"),
            labels: [("a".to_owned(), (index % 3).to_string())].into(),
            external_ips: vec!["192.0.2.1".to_owned(); index % 4],
            ingress: vec!["192.0.2.2".to_owned(); index % 3],
            noise: vec![u8::try_from(index % 256).unwrap(); 40],
            ..Service::default()
        })
        .collect();
    let bytes = list(&services);
    let (whole, _) = scan(BodyKind::List, bytes.clone(), &[usize::MAX]).unwrap();
    assert_eq!(read_list(&whole), expected(&services));
    // A fixed generator, so that every run has the same pieces.
    let mut random = 0x9e37_79b9_7f4a_7c15_u64;
    let mut scanned = 0;
    while scanned < 10_000_000 {
        let mut size = || {
            random ^= random << 13;
            random ^= random >> 7;
            random ^= random << 17;
            usize::try_from(random % 1500).unwrap() + 1
        };
        let sizes: Vec<usize> = (0..64).map(|_| size()).collect();
        let (after, _) = scan(BodyKind::List, bytes.clone(), &sizes).unwrap();
        assert!(after == whole);
        scanned += bytes.len();
    }
}

#[test]
fn the_bookmark_that_ends_the_initial_events_is_seen_and_others_are_not() {
    let bookmark = |annotations: &[(&str, &str)]| {
        let annotations =
            annotations.iter().map(|(key, value)| ((*key).to_owned(), (*value).to_owned())).collect();
        event("BOOKMARK", &envelope("Service", &Service { annotations, ..Service::default() }.write()))
    };
    let end = [("k8s.io/initial-events-end", "true")];
    for (annotations, ends) in [(&end[..], true), (&[], false), (&[("other", "true")], false)] {
        let (_, seen) = scan(BodyKind::Watch, bookmark(annotations), &[1]).unwrap();
        assert_eq!((seen.initial_events_end, seen.services), (ends, 0));
    }
    // An ordinary Service with the annotation does not count.
    let service =
        Service { annotations: [(end[0].0.to_owned(), end[0].1.to_owned())].into(), ..Service::default() };
    let (_, seen) =
        scan(BodyKind::Watch, event("ADDED", &envelope("Service", &service.write())), &[1]).unwrap();
    assert!(!seen.initial_events_end);
}

#[test]
fn an_error_event_passes_as_it_is() {
    // A Status has other fields under the same numbers.
    let status = [field(1, b""), field(2, b"Failure"), field(3, b"too old resource version")].concat();
    let bytes = event("ERROR", &envelope("Status", &status));
    assert_eq!(scan(BodyKind::Watch, bytes.clone(), &[3]).unwrap().0, bytes);
}

#[test]
fn what_is_not_as_expected_breaks_the_stream() {
    let narrowed = Service { labels: [("a".to_owned(), "1".to_owned())].into(), ..Service::default() };
    let meta = fields(&narrowed.write())[0].1.clone();
    let spec = field(2, &field(5, b"192.0.2.1"));
    let service = |parts: &[Vec<u8>]| envelope("Service", &parts.concat());
    let unusual_tag = [vec![0x80 | 5 << 3 | 2, 0x00], varint(3), b"abc".to_vec()].concat();
    for (bytes, problem) in [
        (event("ADDED", &service(&[spec.clone(), field(1, &meta)])), WireError::Order),
        (event("ADDED", &service(&[field(1, &meta), spec.clone(), field(1, &meta)])), WireError::Order),
        (event("ADDED", &service(&[field(1, &meta), field(2, &unusual_tag)])), WireError::Tag),
        (event("ADDED", &envelope("Secret", &narrowed.write())), WireError::Kind),
        (event("RENAMED", &service(&[field(1, &meta)])), WireError::Event),
        (event("ADDED", b"json{}"), WireError::Magic),
        (event("ADDED", &service(&[field(1, &meta), vec![2 << 3 | 2, 100, 0]])), WireError::Overrun),
        (event("ADDED", &service(&[vec![1 << 3, 0]])), WireError::WireType),
        (event("ADDED", &[&b"k8s\0"[..], &[0xff; 12]].concat()), WireError::Varint),
    ] {
        assert_eq!(scan(BodyKind::Watch, bytes, &[1]).unwrap_err(), problem);
    }
}

#[test]
fn a_stream_that_is_only_looked_at_stays_as_it_is() {
    let service = Service {
        labels: [("a".to_owned(), "1".to_owned())].into(),
        external_ips: vec!["192.0.2.1".to_owned()],
        ..Service::default()
    };
    let bytes = Bytes::from(list(&[service]));
    let mut narrower = Narrower::new(Format::Protobuf, BodyKind::List, narrowing(), false);
    assert_eq!(narrower.feed(bytes.clone()), Ok(bytes));
    assert_eq!(narrower.summary().narrowed, 1);
}

#[test]
fn a_body_may_end_after_a_whole_list_and_between_events_only() {
    let service = Service { external_ips: vec!["192.0.2.1".to_owned()], ..Service::default() };
    let events = event("ADDED", &envelope("Service", &service.write()));
    for (body, bytes, ends) in [
        (BodyKind::List, list(&[service]), false),
        (BodyKind::Watch, [events.clone(), events.clone()].concat(), true),
    ] {
        let bytes = Bytes::from(bytes);
        for length in 0..=bytes.len() {
            let mut narrower = Narrower::new(Format::Protobuf, body, narrowing(), true);
            narrower.feed(bytes.slice(..length)).unwrap();
            let between = ends && (length == 0 || length == events.len());
            let whole = length == bytes.len() || between;
            // A list is an envelope with a few fields, and could end after each of them.
            if whole || body == BodyKind::Watch {
                assert_eq!(narrower.finish().is_ok(), whole, "{body:?} {length}");
            }
        }
    }
    let mut narrower = Narrower::new(Format::Protobuf, BodyKind::List, narrowing(), true);
    let cut = Bytes::from(list(&[Service::default(), Service::default()])).slice(..60);
    narrower.feed(cut).unwrap();
    assert_eq!(narrower.finish(), Err(WireError::Truncated));
}
