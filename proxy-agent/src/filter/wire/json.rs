//! Narrows JSON. A watch is a sequence of events; a list is one document, read item by item. The
//! stream buffers one event or item at a time, up to a limit, and forwards it when it is complete.
//! The bytes in between pass unchanged.
//!
//! A narrowed object loses the members with addresses. Every other member keeps its bytes.

mod members;
mod value;

use std::collections::BTreeMap;
use std::sync::Arc;

use isp_api::view::{Narrowing, View};

use self::members::{RawMembers, parse, write_without};
use self::value::ValueScanner;
use super::{BodyKind, INITIAL_EVENTS_END, StreamSummary, WireError};

#[cfg(test)]
mod tests;

/// The limit for one object. The API server cannot store larger ones.
pub(super) const LARGEST_OBJECT: usize = 8 << 20;
/// The agent does not keep a buffer that is larger than this for the next object.
const ORDINARY_OBJECT: usize = 64 << 10;

/// The paths of the addresses of a Service.
const ADDRESSES: [&[&str]; 2] = [&["spec", "externalIPs"], &["status", "loadBalancer", "ingress"]];
const ADDRESSES_IN_EVENT: [&[&str]; 2] =
    [&["object", "spec", "externalIPs"], &["object", "status", "loadBalancer", "ingress"]];

/// Reads one response body.
#[derive(Debug)]
pub(super) struct JsonStream {
    narrowing: Arc<Narrowing>,
    rewrite: bool,
    expected: Expected,
    /// The incomplete value, and its bytes so far.
    value: Option<ValueScanner>,
    buffer: Vec<u8>,
    summary: StreamSummary,
}

/// The expected next token, apart from white space.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Expected {
    /// An event of a watch.
    Event,
    /// The brace that begins a list.
    List,
    /// The name of the first member of a list, or the end of the list.
    FirstMember,
    Member,
    Colon(ListMember),
    Content(ListMember),
    /// A comma and another member, or the end of the list.
    AfterMember,
    FirstItem,
    Item,
    AfterItem,
    /// No more tokens.
    End,
}

/// The members of a list.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum ListMember {
    Kind,
    /// `apiVersion` and `metadata`, which contain no Service.
    Other,
    Items,
}

impl JsonStream {
    pub(super) fn new(kind: BodyKind, narrowing: Arc<Narrowing>, rewrite: bool) -> Self {
        let expected = match kind {
            BodyKind::List => Expected::List,
            BodyKind::Watch => Expected::Event,
        };
        Self {
            narrowing,
            rewrite,
            expected,
            value: None,
            buffer: Vec::new(),
            summary: StreamSummary::default(),
        }
    }

    pub(super) fn summary(&self) -> StreamSummary {
        self.summary
    }

    pub(super) fn is_complete(&self) -> bool {
        self.value.is_none() && matches!(self.expected, Expected::Event | Expected::End)
    }

    /// Takes the next bytes and appends the bytes to forward to `out`.
    pub(super) fn feed(&mut self, chunk: &[u8], out: &mut Vec<u8>) -> Result<(), WireError> {
        let mut rest = chunk;
        while let Some(byte) = rest.first() {
            if let Some(value) = &mut self.value {
                let (taken, ended) = value.take(rest);
                if self.buffer.len() + taken > LARGEST_OBJECT {
                    return Err(WireError::Large);
                }
                self.buffer.extend_from_slice(&rest[..taken]);
                rest = &rest[taken..];
                if ended {
                    self.forward_value(out)?;
                }
            } else if byte.is_ascii_whitespace() {
                out.push(*byte);
                rest = &rest[1..];
            } else if self.begins_value(*byte) {
                self.value = Some(ValueScanner::default());
            } else {
                self.expected = self.after(*byte)?;
                out.push(*byte);
                rest = &rest[1..];
            }
        }
        Ok(())
    }

    fn begins_value(&self, byte: u8) -> bool {
        match self.expected {
            Expected::Event | Expected::FirstItem | Expected::Item => byte == b'{',
            Expected::FirstMember | Expected::Member => byte == b'"',
            Expected::Content(ListMember::Items) => byte != b'[',
            Expected::Content(_) => true,
            _ => false,
        }
    }

    /// Returns the expected token after a byte that is not part of a value.
    fn after(&self, byte: u8) -> Result<Expected, WireError> {
        Ok(match (self.expected, byte) {
            (Expected::List, b'{') => Expected::FirstMember,
            (Expected::Colon(member), b':') => Expected::Content(member),
            (Expected::AfterMember, b',') => Expected::Member,
            (Expected::FirstMember | Expected::AfterMember, b'}') => Expected::End,
            (Expected::Content(ListMember::Items), b'[') => Expected::FirstItem,
            (Expected::AfterItem, b',') => Expected::Item,
            (Expected::FirstItem | Expected::AfterItem, b']') => Expected::AfterMember,
            _ => return Err(WireError::Syntax),
        })
    }

    /// Forwards the buffered value, which is complete.
    fn forward_value(&mut self, out: &mut Vec<u8>) -> Result<(), WireError> {
        self.value = None;
        let raw = std::mem::take(&mut self.buffer);
        self.expected = match self.expected {
            Expected::FirstMember | Expected::Member => {
                out.extend_from_slice(&raw);
                Expected::Colon(member(&raw)?)
            }
            Expected::Content(member) => {
                check_content(member, &raw)?;
                out.extend_from_slice(&raw);
                Expected::AfterMember
            }
            Expected::FirstItem | Expected::Item => {
                self.service(&parse(&raw)?, &raw, &ADDRESSES, out)?;
                Expected::AfterItem
            }
            _ => {
                self.event(&raw, out)?;
                Expected::Event
            }
        };
        if raw.capacity() <= ORDINARY_OBJECT {
            self.buffer = raw;
            self.buffer.clear();
        }
        Ok(())
    }

    fn event(&mut self, raw: &[u8], out: &mut Vec<u8>) -> Result<(), WireError> {
        let event: RawMembers<'_> = parse(raw)?;
        let event_type: String = parse(event.get("type").ok_or(WireError::Event)?)?;
        let object: RawMembers<'_> = parse(event.get("object").ok_or(WireError::Event)?)?;
        let is = |wanted: &str| object.get("kind").is_some_and(|kind| parse(kind) == Ok(wanted));
        match event_type.as_str() {
            "ERROR" if is("Status") => out.extend_from_slice(raw),
            "BOOKMARK" if is("Service") => {
                self.summary.initial_events_end |= metadata_map(&object, "annotations")?
                    .get(INITIAL_EVENTS_END)
                    .is_some_and(|ends| ends == "true");
                out.extend_from_slice(raw);
            }
            "ADDED" | "MODIFIED" | "DELETED" if is("Service") => {
                self.service(&object, raw, &ADDRESSES_IN_EVENT, out)?;
            }
            "ADDED" | "MODIFIED" | "DELETED" | "BOOKMARK" | "ERROR" => return Err(WireError::Kind),
            _ => return Err(WireError::Event),
        }
        Ok(())
    }

    /// Forwards the value `raw`, which contains one Service with its addresses at these paths.
    fn service(
        &mut self,
        service: &RawMembers<'_>,
        raw: &[u8],
        addresses: &[&[&str]],
        out: &mut Vec<u8>,
    ) -> Result<(), WireError> {
        let narrowed = self.narrowing.of(&metadata_map(service, "labels")?) > View::Full;
        self.summary.services += 1;
        self.summary.narrowed += u64::from(narrowed);
        if narrowed && self.rewrite {
            write_without(raw, addresses, out)
        } else {
            out.extend_from_slice(raw);
            Ok(())
        }
    }
}

fn member(name: &[u8]) -> Result<ListMember, WireError> {
    match parse::<String>(name)?.as_str() {
        "kind" => Ok(ListMember::Kind),
        "apiVersion" | "metadata" => Ok(ListMember::Other),
        "items" => Ok(ListMember::Items),
        _ => Err(WireError::Syntax),
    }
}

/// Checks the value of a member of a list, other than an array of items.
fn check_content(member: ListMember, raw: &[u8]) -> Result<(), WireError> {
    match member {
        ListMember::Kind if parse(raw) == Ok("ServiceList") => Ok(()),
        ListMember::Kind => Err(WireError::Kind),
        ListMember::Other => parse::<&serde_json::value::RawValue>(raw).map(drop),
        // Go may encode an empty list as null.
        ListMember::Items => parse::<()>(raw),
    }
}

/// Returns a map of strings in an object's metadata.
fn metadata_map(object: &RawMembers<'_>, name: &str) -> Result<BTreeMap<String, String>, WireError> {
    let Some(metadata) = object.get("metadata") else { return Ok(BTreeMap::new()) };
    let metadata: RawMembers<'_> = parse(metadata)?;
    let map: Option<Option<BTreeMap<String, String>>> = metadata.get(name).map(parse).transpose()?;
    Ok(map.flatten().unwrap_or_default())
}
