//! The members of a JSON object, each as the bytes it came with, and an object without some of them.

use std::fmt;

use serde::de::{Deserialize, Deserializer, Error, MapAccess, Visitor};
use serde_json::value::RawValue;

use super::Broken;

/// In the order in which they came. A name that comes twice is an error: its readers would not agree which one counts.
pub(super) struct Members<'a>(Vec<(String, &'a RawValue)>);

impl<'a> Members<'a> {
    pub(super) fn get(&self, name: &str) -> Option<&'a [u8]> {
        self.0.iter().find(|(found, _)| found == name).map(|(_, value)| value.get().as_bytes())
    }
}

impl<'de> Deserialize<'de> for Members<'de> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Collect;

        impl<'de> Visitor<'de> for Collect {
            type Value = Members<'de>;

            fn expecting(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
                out.write_str("an object")
            }

            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Self::Value, A::Error> {
                let mut members: Vec<(String, &RawValue)> = Vec::new();
                while let Some((name, value)) = map.next_entry()? {
                    if members.iter().any(|(earlier, _)| *earlier == name) {
                        return Err(A::Error::custom("a name comes twice"));
                    }
                    members.push((name, value));
                }
                Ok(Members(members))
            }
        }

        deserializer.deserialize_map(Collect)
    }
}

pub(super) fn parse<'a, T: Deserialize<'a>>(bytes: &'a [u8]) -> Result<T, Broken> {
    serde_json::from_slice(bytes).map_err(|_| Broken::Syntax)
}

/// Writes an object without the members at these paths.
pub(super) fn prune(object: &[u8], paths: &[&[&str]], out: &mut Vec<u8>) -> Result<(), Broken> {
    out.push(b'{');
    let mut first = true;
    for (name, value) in parse::<Members<'_>>(object)?.0 {
        let inside: Vec<&[&str]> = paths
            .iter()
            .filter_map(|path| path.split_first().filter(|(outermost, _)| **outermost == name))
            .map(|(_, rest)| rest)
            .collect();
        if inside.iter().any(|path| path.is_empty()) {
            continue;
        }
        if !std::mem::take(&mut first) {
            out.push(b',');
        }
        out.extend(serde_json::to_vec(&name).map_err(|_| Broken::Syntax)?);
        out.push(b':');
        let value = value.get().as_bytes();
        if inside.is_empty() || !value.starts_with(b"{") {
            out.extend_from_slice(value);
        } else {
            prune(value, &inside, out)?;
        }
    }
    out.push(b'}');
    Ok(())
}
