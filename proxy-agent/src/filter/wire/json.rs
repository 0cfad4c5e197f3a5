//! The same in JSON. A watch is one event after the other, a list one document whose `items` are taken one by one; one of them at a
//! time is held, with a bound, and passed on when it is whole. What is between them passes as it is.
//!
//! Of a narrowed object the members that hold addresses are left out; every other member keeps the bytes it came with.

mod members;
mod value;

use std::collections::BTreeMap;
use std::sync::Arc;

use isp_api::view::{Narrowing, View};

use self::members::{Members, parse, prune};
use self::value::Value;
use super::{Body, Broken, INITIAL_EVENTS_END, Seen};

#[cfg(test)]
mod tests;

/// More than the API server can store of one object.
pub(super) const LARGEST_OBJECT: usize = 8 << 20;
/// A buffer that had to grow beyond this for one object is not kept for the next.
const ORDINARY_OBJECT: usize = 64 << 10;

/// Where the addresses of a Service are.
const ADDRESSES: [&[&str]; 2] = [&["spec", "externalIPs"], &["status", "loadBalancer", "ingress"]];
const ADDRESSES_IN_EVENT: [&[&str]; 2] =
    [&["object", "spec", "externalIPs"], &["object", "status", "loadBalancer", "ingress"]];

/// Goes through one response body.
#[derive(Debug)]
pub(super) struct Objects {
    narrowing: Arc<Narrowing>,
    rewrite: bool,
    place: Place,
    /// The value that is being held, and its bytes so far.
    value: Option<Value>,
    held: Vec<u8>,
    seen: Seen,
}

/// What comes next, apart from white space.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Place {
    /// An event of a watch.
    Event,
    /// The brace that begins a list.
    List,
    /// The name of a list's first member, or the end of the list.
    FirstMember,
    Member,
    Colon(Member),
    Content(Member),
    /// A comma and another member, or the end of the list.
    AfterMember,
    FirstItem,
    Item,
    AfterItem,
    /// Nothing.
    End,
}

/// The members of a list.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Member {
    Kind,
    /// `apiVersion` and `metadata`; there is no Service in them.
    Other,
    Items,
}

impl Objects {
    pub(super) fn new(body: Body, narrowing: Arc<Narrowing>, rewrite: bool) -> Self {
        let place = match body {
            Body::List => Place::List,
            Body::Watch => Place::Event,
        };
        Self { narrowing, rewrite, place, value: None, held: Vec::new(), seen: Seen::default() }
    }

    pub(super) fn seen(&self) -> Seen {
        self.seen
    }

    pub(super) fn is_whole(&self) -> bool {
        self.value.is_none() && matches!(self.place, Place::Event | Place::End)
    }

    /// Takes the next bytes and adds to `out` what may be passed on.
    pub(super) fn feed(&mut self, chunk: &[u8], out: &mut Vec<u8>) -> Result<(), Broken> {
        let mut rest = chunk;
        while let Some(byte) = rest.first() {
            if let Some(value) = &mut self.value {
                let (taken, ended) = value.take(rest);
                if self.held.len() + taken > LARGEST_OBJECT {
                    return Err(Broken::Large);
                }
                self.held.extend_from_slice(&rest[..taken]);
                rest = &rest[taken..];
                if ended {
                    self.pass(out)?;
                }
            } else if byte.is_ascii_whitespace() {
                out.push(*byte);
                rest = &rest[1..];
            } else if self.begins_value(*byte) {
                self.value = Some(Value::default());
            } else {
                self.place = self.after(*byte)?;
                out.push(*byte);
                rest = &rest[1..];
            }
        }
        Ok(())
    }

    fn begins_value(&self, byte: u8) -> bool {
        match self.place {
            Place::Event | Place::FirstItem | Place::Item => byte == b'{',
            Place::FirstMember | Place::Member => byte == b'"',
            Place::Content(Member::Items) => byte != b'[',
            Place::Content(_) => true,
            _ => false,
        }
    }

    /// The place after a byte that is no value's.
    fn after(&self, byte: u8) -> Result<Place, Broken> {
        Ok(match (self.place, byte) {
            (Place::List, b'{') => Place::FirstMember,
            (Place::Colon(member), b':') => Place::Content(member),
            (Place::AfterMember, b',') => Place::Member,
            (Place::FirstMember | Place::AfterMember, b'}') => Place::End,
            (Place::Content(Member::Items), b'[') => Place::FirstItem,
            (Place::AfterItem, b',') => Place::Item,
            (Place::FirstItem | Place::AfterItem, b']') => Place::AfterMember,
            _ => return Err(Broken::Syntax),
        })
    }

    /// Passes on the value that is held, which is whole now.
    fn pass(&mut self, out: &mut Vec<u8>) -> Result<(), Broken> {
        self.value = None;
        let held = std::mem::take(&mut self.held);
        self.place = match self.place {
            Place::FirstMember | Place::Member => {
                out.extend_from_slice(&held);
                Place::Colon(member(&held)?)
            }
            Place::Content(member) => {
                content(member, &held)?;
                out.extend_from_slice(&held);
                Place::AfterMember
            }
            Place::FirstItem | Place::Item => {
                self.service(&parse(&held)?, &held, &ADDRESSES, out)?;
                Place::AfterItem
            }
            _ => {
                self.event(&held, out)?;
                Place::Event
            }
        };
        if held.capacity() <= ORDINARY_OBJECT {
            self.held = held;
            self.held.clear();
        }
        Ok(())
    }

    fn event(&mut self, held: &[u8], out: &mut Vec<u8>) -> Result<(), Broken> {
        let event: Members<'_> = parse(held)?;
        let kind: String = parse(event.get("type").ok_or(Broken::Event)?)?;
        let object: Members<'_> = parse(event.get("object").ok_or(Broken::Event)?)?;
        let is = |wanted: &str| object.get("kind").is_some_and(|kind| parse(kind) == Ok(wanted));
        match kind.as_str() {
            "ERROR" if is("Status") => out.extend_from_slice(held),
            "BOOKMARK" if is("Service") => {
                self.seen.initial_events_end |=
                    texts(&object, "annotations")?.get(INITIAL_EVENTS_END).is_some_and(|ends| ends == "true");
                out.extend_from_slice(held);
            }
            "ADDED" | "MODIFIED" | "DELETED" if is("Service") => {
                self.service(&object, held, &ADDRESSES_IN_EVENT, out)?;
            }
            "ADDED" | "MODIFIED" | "DELETED" | "BOOKMARK" | "ERROR" => return Err(Broken::Kind),
            _ => return Err(Broken::Event),
        }
        Ok(())
    }

    /// One Service, in a value that holds it and has its addresses in these places.
    fn service(
        &mut self,
        service: &Members<'_>,
        held: &[u8],
        addresses: &[&[&str]],
        out: &mut Vec<u8>,
    ) -> Result<(), Broken> {
        let narrowed = self.narrowing.of(&texts(service, "labels")?) > View::Full;
        self.seen.services += 1;
        self.seen.narrowed += u64::from(narrowed);
        if narrowed && self.rewrite {
            prune(held, addresses, out)
        } else {
            out.extend_from_slice(held);
            Ok(())
        }
    }
}

fn member(name: &[u8]) -> Result<Member, Broken> {
    match parse::<String>(name)?.as_str() {
        "kind" => Ok(Member::Kind),
        "apiVersion" | "metadata" => Ok(Member::Other),
        "items" => Ok(Member::Items),
        _ => Err(Broken::Syntax),
    }
}

/// What a member of a list may hold, apart from items.
fn content(member: Member, held: &[u8]) -> Result<(), Broken> {
    match member {
        Member::Kind if parse(held) == Ok("ServiceList") => Ok(()),
        Member::Kind => Err(Broken::Kind),
        Member::Other => parse::<&serde_json::value::RawValue>(held).map(drop),
        // An empty list of Go's may be written so.
        Member::Items => parse::<()>(held),
    }
}

/// A map of texts in an object's metadata.
fn texts(object: &Members<'_>, name: &str) -> Result<BTreeMap<String, String>, Broken> {
    let Some(metadata) = object.get("metadata") else { return Ok(BTreeMap::new()) };
    let metadata: Members<'_> = parse(metadata)?;
    let map: Option<Option<BTreeMap<String, String>>> = metadata.get(name).map(parse).transpose()?;
    Ok(map.flatten().unwrap_or_default())
}
