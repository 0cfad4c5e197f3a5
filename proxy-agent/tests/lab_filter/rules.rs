//! The rules of a node, as the kernel has them, in a form in which equal rulesets are equal. Pure.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::Value;

/// The objects and rules of `nft -j list ruleset`, without handles and counters. Rules keep their place in their chain; chains,
/// sets and the elements of sets have none.
pub(crate) fn of_nftables(listed: &str) -> BTreeSet<String> {
    let mut listed: Value = serde_json::from_str(listed).unwrap();
    normalise(&mut listed);
    let mut places = BTreeMap::new();
    let described = |object: &Value| {
        let Some(rule) = object.get("rule") else { return object.to_string() };
        let chain = ["family", "table", "chain"].map(|name| rule[name].to_string());
        format!("{} {rule}", next(&mut places, chain))
    };
    // The first is about nft itself.
    listed["nftables"].as_array().unwrap().iter().skip(1).map(described).collect()
}

/// Takes out what differs between two equal rulesets.
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

/// The lines of `iptables-save`, each with its table and without counters. kube-proxy sends Services and node ports to chains of
/// their own in any order; within those the order counts.
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

/// How many there have been under this key.
fn next<K: Ord>(places: &mut BTreeMap<K, usize>, key: K) -> usize {
    let count = places.entry(key).or_insert(0);
    *count += 1;
    *count
}

/// What differs, as far as a person would read it.
pub(crate) fn difference(rules: &BTreeSet<String>, wanted: &BTreeSet<String>) -> String {
    let some = |more: &BTreeSet<String>, less: &BTreeSet<String>| {
        let all: Vec<&str> = more.difference(less).map(String::as_str).collect();
        format!("{}:\n  {}", all.len(), all[..all.len().min(12)].join("\n  "))
    };
    format!("too many, {}\ntoo few, {}", some(rules, wanted), some(wanted, rules))
}
