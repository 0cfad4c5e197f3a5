//! The text of tables in the real kernel, through the real `nft`.

#![allow(clippy::unwrap_used, clippy::panic, reason = "helpers of tests fail as tests do")]

mod common;

use std::collections::BTreeSet;

use isp_dataplane::{model::Service, nft::Family, text::render};
use isp_lab::NetNs;

fn load(world: &NetNs, text: &str) {
    world.check("node", &["nft", "-f", "-"], text).unwrap();
}

fn list(world: &NetNs) -> String {
    world.check("node", &["nft", "list", "ruleset"], "").unwrap().stdout
}

/// The parts of a listing whose order does not depend on the kernel's hash tables.
fn parts(listing: &str) -> BTreeSet<&str> {
    listing
        .split([',', '\n'])
        .map(|part| part.trim().trim_start_matches("elements = {").trim_matches(['{', '}', ' ']))
        .collect()
}

#[test]
fn nft_prints_the_rules_as_they_were_written() {
    for family in Family::ALL {
        let world = NetNs::new(&["node"]).unwrap();
        let table = common::plane(family, &common::node(), &without_affinity()).table();
        let text = render(&table, &[]);
        load(&world, &text);
        assert_eq!(list(&world), text);
    }
}

#[test]
fn nft_reads_back_what_it_lists() {
    let mut services = vec![(Family::Ip, common::examples())];
    services.push((Family::Ip, without_affinity()));
    services.push((Family::Ip6, without_affinity()));
    for (family, services) in services {
        let world = NetNs::new(&["node"]).unwrap();
        let plane = common::plane(family, &common::node(), &services);
        let text = render(&plane.table(), &plane.elements());
        load(&world, &text);
        let listed = list(&world);
        assert_eq!(parts(&listed), parts(&text));
        world.check("node", &["nft", "flush", "ruleset"], "").unwrap();
        load(&world, &listed);
        assert_eq!(parts(&list(&world)), parts(&text));
    }
}

/// nft 1.0.6 cannot read the affinity rule of an IPv6 table.
fn without_affinity() -> Vec<(std::sync::Arc<isp_dataplane::model::ServiceName>, Service)> {
    common::examples()
        .into_iter()
        .map(|(name, service)| (name, Service { affinity: None, ..service }))
        .collect()
}
