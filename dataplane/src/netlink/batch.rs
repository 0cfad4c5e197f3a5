//! A transaction: operations that the kernel carries out all or not at all.
//!
//! A batch knows nothing about sequence numbers and generations until it is framed for sending. A
//! socket whose send buffer is limited gets several frames, each a transaction of its own.

use std::fmt;

use super::element;
use super::field::Kind;
use super::message::{self, HEADER, Head, flag};
use super::nf_tables::{self, family};
use super::value;
use crate::nft::Family;

/// What an operation is about, for messages about its failure.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Subject {
    /// The operation.
    pub verb: Verb,
    /// The kind of object.
    pub object: Object,
    /// The family and name of the table.
    pub table: String,
    /// The name of the chain or set; empty for the table itself.
    pub name: String,
}

/// An operation.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Verb {
    /// Create, or adopt an equal one.
    Add,
    /// Delete.
    Delete,
    /// Delete everything inside.
    Flush,
}

/// A kind of object.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Object {
    /// A table.
    Table,
    /// A chain.
    Chain,
    /// A rule, or the rules of a chain.
    Rule,
    /// A set or map.
    Set,
    /// Elements of a set or map.
    Elements,
}

impl fmt::Display for Subject {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let verb = match self.verb {
            Verb::Add => "add",
            Verb::Delete => "delete",
            Verb::Flush => "flush",
        };
        let Self { table, name, .. } = self;
        match self.object {
            Object::Table => write!(out, "{verb} table {table}"),
            Object::Chain => write!(out, "{verb} chain {name} of table {table}"),
            Object::Rule => write!(out, "{verb} a rule of chain {name} of table {table}"),
            Object::Set => write!(out, "{verb} set {name} of table {table}"),
            Object::Elements => write!(out, "{verb} elements of set {name} of table {table}"),
        }
    }
}

/// An operation of a batch.
#[derive(Debug, Clone)]
struct Operation {
    /// The position of its first byte.
    start: usize,
    subject: Subject,
    /// The fields of the keys of elements.
    key: Option<(Family, Vec<Kind>)>,
}

/// Operations in the order in which the kernel carries them out.
#[derive(Debug, Clone, Default)]
pub struct Batch {
    bytes: Vec<u8>,
    operations: Vec<Operation>,
    /// The number of sets that the batch creates.
    sets: u32,
}

/// A batch, or a part of one, ready for sending.
#[derive(Debug)]
pub struct Frame {
    /// The bytes of the datagram.
    pub bytes: Vec<u8>,
    /// The sequence number of the message that begins it. Errors of the whole batch have it.
    pub first: u32,
    /// The sequence number of the last operation, which the kernel acknowledges.
    pub last: u32,
    /// The place of its first operation in the batch.
    offset: usize,
}

impl Batch {
    /// A batch without operations.
    pub fn new() -> Self {
        Self::default()
    }

    /// Whether there is nothing to do.
    pub fn is_empty(&self) -> bool {
        self.operations.is_empty()
    }

    /// The number of operations.
    pub fn len(&self) -> usize {
        self.operations.len()
    }

    /// The number of bytes of the operations.
    pub fn byte_length(&self) -> usize {
        self.bytes.len()
    }

    /// Appends an operation.
    pub(super) fn push(
        &mut self,
        subject: Subject,
        kind: u16,
        flags: u16,
        family: u8,
        body: impl FnOnce(&mut super::attributes::Writer<'_>),
    ) {
        self.operations.push(Operation { start: self.bytes.len(), subject, key: None });
        let head = Head { kind, flags: flag::REQUEST | flags, sequence: 0, family, resource: 0 };
        message::write(&mut self.bytes, head, body);
    }

    /// A number for a new set.
    pub(super) fn next_id(&mut self) -> u32 {
        self.sets += 1;
        self.sets
    }

    /// The number of sequence numbers that one frame with all operations needs.
    pub fn sequences(&self) -> u32 {
        u32::try_from(self.operations.len()).unwrap_or(u32::MAX).saturating_add(2)
    }

    /// The number of bytes of one frame with all operations.
    pub fn frame_length(&self) -> usize {
        self.bytes.len() + BEGIN_LENGTH + END_LENGTH
    }

    /// The places at which frames of at most so many bytes begin. There is at least one frame for a
    /// batch with operations; an operation that alone exceeds the limit gets a frame of its own.
    pub fn split(&self, limit: usize) -> Vec<usize> {
        let room = limit.saturating_sub(BEGIN_LENGTH + END_LENGTH);
        let mut frames = Vec::new();
        let mut frame_start = 0;
        for (place, operation) in self.operations.iter().enumerate() {
            if place == 0 || self.end_of(place) - frame_start > room {
                frames.push(place);
                frame_start = operation.start;
            }
        }
        frames
    }

    fn end_of(&self, place: usize) -> usize {
        self.operations.get(place + 1).map_or(self.bytes.len(), |next| next.start)
    }

    /// The frame of the operations of these places, decided on a generation.
    pub fn frame(&self, places: std::ops::Range<usize>, first: u32, generation: Option<u32>) -> Frame {
        let Some(operations) = self.operations.get(places.clone()).filter(|all| !all.is_empty()) else {
            return Frame { bytes: Vec::new(), first, last: first, offset: places.start };
        };
        let start = operations[0].start;
        let end = self.end_of(places.end - 1);
        let mut bytes = Vec::with_capacity(end - start + BEGIN_LENGTH + END_LENGTH);
        begin(&mut bytes, first, generation);
        let base = bytes.len();
        bytes.extend_from_slice(&self.bytes[start..end]);

        let mut sequence = first;
        for operation in operations {
            sequence += 1;
            let at = base + operation.start - start;
            bytes[at + 8..at + 12].copy_from_slice(&sequence.to_ne_bytes());
        }
        // Kernels before 6.10 do not acknowledge the end of a batch.
        let at = base + operations[operations.len() - 1].start - start;
        let flags = u16::from_ne_bytes([bytes[at + 6], bytes[at + 7]]) | flag::ACK;
        bytes[at + 6..at + 8].copy_from_slice(&flags.to_ne_bytes());
        finish(&mut bytes, sequence + 1);
        Frame { bytes, first, last: sequence, offset: places.start }
    }

    /// The operation of a sequence number of a frame.
    pub fn subject(&self, frame: &Frame, sequence: u32) -> Option<&Subject> {
        Some(&self.operations.get(frame.place(sequence)?)?.subject)
    }

    /// The key of the element at a position of the operation with a sequence number, as text. The
    /// kernel names the position when it rejects an element.
    pub fn key_at(&self, frame: &Frame, sequence: u32, offset: usize) -> Option<String> {
        let place = frame.place(sequence)?;
        let operation = self.operations.get(place)?;
        let (family, kinds) = operation.key.as_ref()?;
        let message = self.bytes.get(operation.start..self.end_of(place))?;
        let key = element::key_at(message, offset)?;
        Some(value::describe(&value::read_kinds(key, kinds.iter().copied(), *family)?))
    }

    /// Keeps the fields of the keys in the last operation.
    pub(super) fn remember_key(&mut self, family: Family, key: Vec<Kind>) {
        if let Some(last) = self.operations.last_mut() {
            last.key = Some((family, key));
        }
    }
}

impl Frame {
    /// The place in the batch of the operation with a sequence number.
    fn place(&self, sequence: u32) -> Option<usize> {
        let place = sequence.checked_sub(self.first)?.checked_sub(1)?;
        Some(self.offset + usize::try_from(place).ok()?)
    }
}

/// The byte length of the first message of a frame, with a generation.
const BEGIN_LENGTH: usize = HEADER + message::FAMILY_HEADER + 8;
/// The byte length of the last message of a frame.
const END_LENGTH: usize = HEADER + message::FAMILY_HEADER;

fn begin(out: &mut Vec<u8>, sequence: u32, generation: Option<u32>) {
    let head = delimiter(nf_tables::message::BATCH_BEGIN, sequence);
    message::write(out, head, |out| {
        if let Some(generation) = generation {
            out.be32(nf_tables::batch::GENERATION, generation);
        }
    });
}

fn finish(out: &mut Vec<u8>, sequence: u32) {
    message::write(out, delimiter(nf_tables::message::BATCH_END, sequence), |_| {});
}

fn delimiter(kind: u16, sequence: u32) -> Head {
    Head {
        kind,
        flags: flag::REQUEST,
        sequence,
        family: family::UNSPECIFIED,
        resource: nf_tables::message::BATCH_RESOURCE,
    }
}

#[cfg(test)]
mod tests;
