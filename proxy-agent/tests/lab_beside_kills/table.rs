//! A table as `nft` lists it, in a form that does not depend on how it came about. Two agents give
//! the same port different identities and its endpoints different places; nothing else may differ.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::{Map, Value, json};

/// The bits of a handle that have the identity of a port.
const IDENTITY: u32 = (1 << 19) - 1;

/// Stands for the port of an identity that no port has.
const UNKNOWN: &str = "an identity that no ClusterIP has";

/// A table.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct Table {
    /// The declarations of sets and chains, and the rules of each chain, without those that depend
    /// on the numbers of endpoints that have ever occurred.
    pub(crate) rules: BTreeMap<String, Vec<String>>,
    /// The elements of each set, with the ClusterIP and port instead of their identity.
    pub(crate) elements: BTreeMap<String, BTreeSet<String>>,
    /// The places of each handle's endpoints.
    places: BTreeMap<String, Vec<u64>>,
    /// Endpoints that have two places. A table that is being changed may have some: an endpoint
    /// moves to its new place before the old one is deleted.
    moving: Vec<String>,
    /// The numbers of endpoints that have chains, with the rules of each chain.
    numbers: BTreeMap<String, Vec<String>>,
}

impl Table {
    /// Parses the output of `nft -j list table`.
    pub(crate) fn read(listing: &str) -> Self {
        let listing: Value = serde_json::from_str(listing).unwrap();
        let objects: Vec<(&String, &Value)> = listing["nftables"]
            .as_array()
            .unwrap()
            .iter()
            .flat_map(|each| each.as_object().unwrap())
            .collect();
        let ports = ports(&objects);
        let mut table = Self::default();
        for (kind, object) in objects {
            let mut object = object.as_object().unwrap().clone();
            let name = object.get("chain").or(object.get("name")).and_then(Value::as_str).map(str::to_owned);
            let Some(name) = name.filter(|_| kind != "table") else { continue };
            let elements = object.remove("elem");
            for key in ["handle", "table"] {
                object.remove(key);
            }
            table.declare(kind, &name, &object);
            // Clients fill this map.
            for element in
                elements.iter().flat_map(|all| all.as_array().unwrap()).filter(|_| name != "affinity")
            {
                table.add(&name, element, &ports);
            }
        }
        table.elements.remove("counts");
        table
    }

    fn declare(&mut self, kind: &str, name: &str, object: &Map<String, Value>) {
        let among = if name.starts_with("choose-") { &mut self.numbers } else { &mut self.rules };
        among.entry(format!("{kind} {name}")).or_default().push(Value::from(object.clone()).to_string());
    }

    fn add(&mut self, set: &str, element: &Value, ports: &BTreeMap<u32, String>) {
        let named = with_names(element, ports);
        if set == "endpoints" {
            let key = &named[0]["concat"];
            let place = key[1].as_u64().unwrap();
            self.places.entry(key[0].to_string()).or_default().push(place);
            let text = json!([key[0], named[1]]).to_string();
            if !self.elements.entry(set.to_owned()).or_default().insert(text.clone()) {
                self.moving.push(text);
            }
        } else {
            self.elements.entry(set.to_owned()).or_default().insert(named.to_string());
        }
    }

    /// Checks that no element is left of a change: every endpoint has one place, the places have no
    /// gap, and every identity is in use. The agent deletes such elements a moment later.
    pub(crate) fn expect_settled(&self) -> Result<(), String> {
        if !self.moving.is_empty() {
            return Err(format!("endpoints with two places: {:?}", self.moving));
        }
        for (handle, places) in &self.places {
            let places: BTreeSet<_> = places.iter().copied().collect();
            let expected = (0..).take(places.len()).collect();
            if places != expected {
                return Err(format!("the places of {handle} are {places:?}"));
            }
        }
        let mut elements = self.elements.values().flatten();
        match elements.find(|element| element.contains(UNKNOWN)) {
            Some(stale) => Err(format!("stale: {stale}")),
            None => Ok(()),
        }
    }

    /// Asserts that the table is as a fresh one: the same rules and elements, nothing left of a
    /// change, and at least the chains that are needed.
    pub(crate) fn expect_as_fresh(mut self, fresh: &Self) {
        for table in [&self, fresh] {
            table.expect_settled().unwrap();
        }
        assert_eq!(self.rules, fresh.rules, "sets, chains and rules");
        for (set, elements) in &fresh.elements {
            let found = self.elements.remove(set).unwrap_or_default();
            let missing: Vec<_> = elements.difference(&found).collect();
            let stale: Vec<_> = found.difference(elements).collect();
            assert!(missing.is_empty() && stale.is_empty(), "{set}: missing {missing:?}, stale {stale:?}");
        }
        self.elements.retain(|_, left| !left.is_empty());
        assert!(self.elements.is_empty(), "stale: {:?}", self.elements);
        for (chain, rules) in &fresh.numbers {
            assert_eq!(self.numbers.get(chain), Some(rules), "{chain}");
        }
    }

    /// The number of elements.
    pub(crate) fn size(&self) -> usize {
        self.elements.values().map(BTreeSet::len).sum()
    }
}

/// The ClusterIP, protocol and port of each identity.
fn ports(objects: &[(&String, &Value)]) -> BTreeMap<u32, String> {
    let maps = objects.iter().filter(|(kind, object)| *kind == "map" && object["name"] == "cluster-ips");
    let elements = maps.flat_map(|(_, object)| object["elem"].as_array().into_iter().flatten());
    elements
        .map(|element| {
            let handle = element[1].as_str().and_then(handle).unwrap();
            (handle & IDENTITY, element[0].to_string())
        })
        .collect()
}

/// A handle as `nft` writes it, such as `8:2b`.
fn handle(text: &str) -> Option<u32> {
    let (high, low) = text.split_once(':')?;
    let part = |text: &str| u16::from_str_radix(text, 16).ok();
    Some(u32::from(part(high)?) << 16 | u32::from(part(low)?))
}

/// The value with the port's name instead of each identity.
fn with_names(value: &Value, ports: &BTreeMap<u32, String>) -> Value {
    match value {
        Value::Array(all) => all.iter().map(|each| with_names(each, ports)).collect(),
        Value::Object(all) => {
            Value::Object(all.iter().map(|(key, each)| (key.clone(), with_names(each, ports))).collect())
        }
        Value::String(text) => match handle(text) {
            Some(handle) => {
                let unknown = || format!("{UNKNOWN}, {handle:x}");
                let port = ports.get(&(handle & IDENTITY)).cloned().unwrap_or_else(unknown);
                json!(format!("{:x} {port}", handle & !IDENTITY))
            }
            None => value.clone(),
        },
        other => other.clone(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn table(elements: &Value, endpoints: &Value) -> Table {
        let listing = json!({"nftables": [
            {"chain": {"family": "ip", "table": "a", "name": "pick", "handle": 1}},
            {"rule": {"family": "ip", "table": "a", "chain": "pick", "handle": 2, "expr": [{"accept": null}]}},
            {"map": {"table": "a", "name": "cluster-ips", "handle": 3, "elem": elements}},
            {"map": {"table": "a", "name": "endpoints", "handle": 4, "elem": endpoints}},
        ]});
        Table::read(&listing.to_string())
    }

    fn cluster_ip(identity: &str) -> Value {
        json!([[{"concat": ["10.96.0.1", "tcp", 80]}, identity]])
    }

    #[test]
    fn identities_and_places_may_differ() {
        let endpoint = |handle: &str, place: u64, address: &str| json!([{"concat": [handle, place]}, {"concat": [address, 8080]}]);
        let (one, other) = (["10.0.0.1", "10.0.0.2"], ["10.0.0.2", "10.0.0.1"]);
        let of = |handle: &str, order: [&str; 2]| {
            table(&cluster_ip(handle), &json!([endpoint(handle, 0, order[0]), endpoint(handle, 1, order[1])]))
        };
        of("0:2b", one).expect_as_fresh(&of("0:1", other));
    }

    #[test]
    #[should_panic(expected = "two places")]
    fn an_endpoint_with_two_places_is_read_but_not_accepted() {
        let endpoint = |place: u64| json!([{"concat": ["0:1", place]}, {"concat": ["10.0.0.1", 8080]}]);
        let of = |endpoints: &Value| table(&cluster_ip("0:1"), endpoints);
        of(&json!([endpoint(0), endpoint(1)])).expect_as_fresh(&of(&json!([endpoint(0)])));
    }

    #[test]
    #[should_panic(expected = "stale")]
    fn an_element_of_no_port_is_stale() {
        let left = json!([[{"concat": ["0:7", 0]}, {"concat": ["10.0.0.1", 8080]}]]);
        table(&cluster_ip("0:1"), &left).expect_as_fresh(&table(&cluster_ip("0:1"), &json!([])));
    }
}
