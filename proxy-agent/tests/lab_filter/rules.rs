//! The rules of a node in a normalized form, for comparison. Pure.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::Value;

/// The comment of a rule that kube-proxy 1.37 writes if it knows the ranges of `ClusterIPs` by its
/// first sync, and otherwise only with its next full sync, up to an hour later. It is the last of
/// its chain.
const UNALLOCATED: &str = "Drop traffic to unallocated ClusterIPs";

/// Returns the objects and rules of `nft -j list ruleset`, without handles and counters. Rules keep
/// their position in their chain. Chains, sets and the elements of sets have no order.
pub(crate) fn of_nftables(listed: &str) -> BTreeSet<String> {
    let mut listed: Value = serde_json::from_str(listed).unwrap();
    normalise(&mut listed);
    let mut places = BTreeMap::new();
    let described = |object: &Value| {
        let Some(rule) = object.get("rule") else { return object.to_string() };
        let chain = ["family", "table", "chain"].map(|name| rule[name].to_string());
        format!("{} {rule}", next(&mut places, chain))
    };
    let is_chance = |object: &&Value| object["rule"]["comment"] == UNALLOCATED;
    // The first entry is about nft itself.
    let objects = listed["nftables"].as_array().unwrap().iter().skip(1);
    objects.filter(|object| !is_chance(object)).map(described).collect()
}

/// Removes the parts that differ between two equal rulesets.
fn normalise(value: &mut Value) {
    match value {
        Value::Array(items) => items.iter_mut().for_each(normalise),
        Value::Object(fields) => {
            for changing in ["handle", "packets", "bytes"] {
                fields.remove(changing);
            }
            fields.values_mut().for_each(normalise);
            if let Some(Value::Array(elements)) = fields.get_mut("elem") {
                elements.sort_by_key(ToString::to_string);
            }
        }
        _ => {}
    }
}

/// Returns the lines of `iptables-save`, each with its table and without counters. kube-proxy
/// writes the jumps to the chains of Services and node ports in any order; the order within those
/// chains matters.
pub(crate) fn of_iptables(saved: &str) -> BTreeSet<String> {
    const ORDERED: [&str; 5] = ["KUBE-SVC-", "KUBE-SVL-", "KUBE-EXT-", "KUBE-FW-", "KUBE-SEP-"];
    let (mut table, mut places) = ("", BTreeMap::new());
    let mut rules = BTreeSet::new();
    for line in saved.lines().filter(|line| !line.starts_with('#')) {
        table = line.strip_prefix('*').unwrap_or(table);
        let plain = line.split(" [").next().unwrap_or(line);
        let chain = plain.strip_prefix("-A ").and_then(|rule| rule.split(' ').next()).unwrap_or_default();
        let ordered = ORDERED.iter().any(|beginning| chain.starts_with(beginning));
        let place = if ordered { next(&mut places, chain) } else { 0 };
        rules.insert(format!("{table} {place} {plain}"));
    }
    rules
}

/// Increments the count under this key and returns it.
fn next<K: Ord>(places: &mut BTreeMap<K, usize>, key: K) -> usize {
    let count = places.entry(key).or_insert(0);
    *count += 1;
    *count
}

/// Returns the differences, limited to a readable number.
pub(crate) fn difference(rules: &BTreeSet<String>, wanted: &BTreeSet<String>) -> String {
    let some = |more: &BTreeSet<String>, less: &BTreeSet<String>| {
        let all: Vec<&str> = more.difference(less).map(String::as_str).collect();
        format!("{}:\n  {}", all.len(), all[..all.len().min(12)].join("\n  "))
    };
    format!("too many, {}\ntoo few, {}", some(rules, wanted), some(wanted, rules))
}
