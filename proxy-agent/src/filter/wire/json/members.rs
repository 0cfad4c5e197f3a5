//! The members of a JSON object in their original bytes, and the removal of some of them.

use std::fmt;

use serde::de::{Deserialize, Deserializer, Error, MapAccess, Visitor};
use serde_json::value::RawValue;

use super::WireError;

/// The members in their original order. A duplicate name is an error, because readers would
/// disagree on which one counts.
pub(super) struct RawMembers<'a>(Vec<(String, &'a RawValue)>);

impl<'a> RawMembers<'a> {
    pub(super) fn get(&self, name: &str) -> Option<&'a [u8]> {
        self.0.iter().find(|(found, _)| found == name).map(|(_, value)| value.get().as_bytes())
    }
}

impl<'de> Deserialize<'de> for RawMembers<'de> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct MembersVisitor;

        impl<'de> Visitor<'de> for MembersVisitor {
            type Value = RawMembers<'de>;

            fn expecting(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
                out.write_str("an object")
            }

            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Self::Value, A::Error> {
                let mut members: Vec<(String, &RawValue)> = Vec::new();
                while let Some((name, value)) = map.next_entry()? {
                    if members.iter().any(|(earlier, _)| *earlier == name) {
                        return Err(A::Error::custom("duplicate name"));
                    }
                    members.push((name, value));
                }
                Ok(RawMembers(members))
            }
        }

        deserializer.deserialize_map(MembersVisitor)
    }
}

pub(super) fn parse<'a, T: Deserialize<'a>>(bytes: &'a [u8]) -> Result<T, WireError> {
    serde_json::from_slice(bytes).map_err(|_| WireError::Syntax)
}

/// Writes an object without the members at these paths.
pub(super) fn write_without(object: &[u8], paths: &[&[&str]], out: &mut Vec<u8>) -> Result<(), WireError> {
    out.push(b'{');
    let mut first = true;
    for (name, value) in parse::<RawMembers<'_>>(object)?.0 {
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
        out.extend(serde_json::to_vec(&name).map_err(|_| WireError::Syntax)?);
        out.push(b':');
        let value = value.get().as_bytes();
        if inside.is_empty() || !value.starts_with(b"{") {
            out.extend_from_slice(value);
        } else {
            write_without(value, &inside, out)?;
        }
    }
    out.push(b'}');
    Ok(())
}
