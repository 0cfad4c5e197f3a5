//! Narrows protobuf: a state machine that takes chunks of any size and returns the bytes to change.
//! It knows the framing; `object` knows the meaning of the fields.

mod grammar;
mod object;
mod varint;

#[cfg(test)]
mod tests;

use std::sync::Arc;

use isp_api::view::Narrowing;

pub(super) use self::grammar::UNKNOWN_FIELD_TAG;
use self::grammar::{FieldAction, LENGTH_DELIMITED, MAGIC, Message, StringField};
use self::object::{Entered, ObjectReader};
use self::varint::Varint;
use self::varint::VarintStep::{Done, More};
use super::{BodyKind, StreamSummary, WireError};

/// The longest string that matters: the key of a label, with its prefix.
const LONGEST_STRING: u64 = 317;

/// Reads one response body.
#[derive(Debug)]
pub(super) struct ProtobufStream {
    kind: BodyKind,
    /// Whether to change bytes, or only to follow them.
    rewrite: bool,
    state: State,
    /// The number of bytes that have passed.
    position: u64,
    /// The messages around the current byte, each with the position of its end.
    open: Vec<(Message, u64)>,
    object: ObjectReader,
    /// The bytes of the current string.
    string: Vec<u8>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum State {
    /// In the length before an event: bytes read, value so far.
    FrameLength(u8, u32),
    /// In the magic bytes of an object: how many have passed.
    Magic(usize),
    /// In the tag of a field.
    Tag(Varint),
    /// In the length of a field.
    Length(FieldAction, Varint),
    /// In a number that does not matter.
    Number(Varint),
    /// In bytes that do not matter: how many remain.
    Skip(u64),
    /// In a string that matters: how many bytes remain.
    String(StringField, u64),
}

const NEXT_FIELD: State = State::Tag(Varint::START);

impl ProtobufStream {
    pub(super) fn new(kind: BodyKind, narrowing: Arc<Narrowing>, rewrite: bool) -> Self {
        let (state, open) = match kind {
            BodyKind::List => (State::Magic(0), vec![(Message::Envelope, u64::MAX)]),
            BodyKind::Watch => (State::FrameLength(0, 0), Vec::new()),
        };
        let object = ObjectReader::new(kind, narrowing);
        Self { kind, rewrite, state, position: 0, open, object, string: Vec::new() }
    }

    pub(super) fn summary(&self) -> StreamSummary {
        self.object.summary()
    }

    /// Says whether the body may end here: between events, or at the end of the envelope of a list.
    pub(super) fn is_complete(&self) -> bool {
        match self.kind {
            BodyKind::List => self.open.len() == 1 && self.state == NEXT_FIELD,
            BodyKind::Watch => self.open.is_empty() && self.state == State::FrameLength(0, 0),
        }
    }

    /// Takes the next bytes. Returns the indexes of those that have to become
    /// [`UNKNOWN_FIELD_TAG`], usually none.
    pub(super) fn feed(&mut self, chunk: &[u8]) -> Result<Vec<usize>, WireError> {
        let (mut rest, mut tags) = (chunk, Vec::new());
        while !rest.is_empty() {
            let at_most = |remaining: u64| usize::try_from(remaining).unwrap_or(usize::MAX).min(rest.len());
            let taken = match self.state {
                State::Skip(remaining) => {
                    let taken = at_most(remaining);
                    self.state = State::Skip(remaining - taken as u64);
                    taken
                }
                State::String(field, remaining) => {
                    let taken = at_most(remaining);
                    self.string.extend_from_slice(&rest[..taken]);
                    self.state = State::String(field, remaining - taken as u64);
                    taken
                }
                _ => {
                    if self.step(rest[0])? {
                        tags.push(chunk.len() - rest.len());
                    }
                    1
                }
            };
            self.position += taken as u64;
            self.close_finished()?;
            rest = &rest[taken..];
        }
        Ok(tags)
    }

    /// Takes one byte that is neither skipped nor part of a string. Says whether it has to change.
    fn step(&mut self, byte: u8) -> Result<bool, WireError> {
        match self.state {
            State::FrameLength(read, value) => {
                let value = (value << 8) | u32::from(byte);
                if read < 3 {
                    self.state = State::FrameLength(read + 1, value);
                } else {
                    self.object.begin_event();
                    self.open.push((Message::Event, self.position + 1 + u64::from(value)));
                    self.state = NEXT_FIELD;
                }
            }
            State::Magic(passed) => {
                if MAGIC.get(passed) != Some(&byte) {
                    return Err(WireError::Magic);
                }
                self.state = if passed + 1 == MAGIC.len() { NEXT_FIELD } else { State::Magic(passed + 1) };
            }
            State::Tag(tag) => return self.tag(tag, byte),
            State::Length(action, length) => match length.add(byte)? {
                More(length) => self.state = State::Length(action, length),
                Done(length) => self.begin_field(action, length)?,
            },
            State::Number(number) => {
                self.state = match number.add(byte)? {
                    More(number) => State::Number(number),
                    Done(_) => NEXT_FIELD,
                };
            }
            State::Skip(_) | State::String(..) => {}
        }
        Ok(false)
    }

    fn tag(&mut self, so_far: Varint, byte: u8) -> Result<bool, WireError> {
        let tag = match so_far.add(byte)? {
            More(tag) => {
                self.state = State::Tag(tag);
                return Ok(false);
            }
            Done(tag) => tag,
        };
        let message = self.open.last().map_or(Message::Event, |(message, _)| *message);
        let mut action = message.field(tag >> 3, self.kind);
        let wire_type = tag & 7;
        if action != FieldAction::Skip && wire_type != u64::from(LENGTH_DELIMITED) {
            return Err(WireError::WireType);
        }
        let mut hide = false;
        if action == FieldAction::Address {
            hide = self.rewrite && self.object.hides_addresses();
            if hide && so_far != Varint::START {
                return Err(WireError::Tag);
            }
            action = FieldAction::Skip;
        }
        self.state = match wire_type {
            0 => State::Number(Varint::START),
            1 => State::Skip(8),
            2 => State::Length(action, Varint::START),
            5 => State::Skip(4),
            _ => return Err(WireError::WireType),
        };
        Ok(hide)
    }

    /// Begins a field of known length, whose first byte comes next.
    fn begin_field(&mut self, action: FieldAction, length: u64) -> Result<(), WireError> {
        let end = (self.position + 1).checked_add(length).ok_or(WireError::Overrun)?;
        if self.open.last().is_some_and(|(_, parent)| end > *parent) {
            return Err(WireError::Overrun);
        }
        self.state = match action {
            FieldAction::Enter(message) => match self.object.enter(message)? {
                Entered::Skip => State::Skip(length),
                Entered::Read => {
                    self.open.push((message, end));
                    if message == Message::Envelope { State::Magic(0) } else { NEXT_FIELD }
                }
            },
            FieldAction::Read(field) if length <= LONGEST_STRING => {
                self.string.clear();
                State::String(field, length)
            }
            FieldAction::Read(StringField::EventType) => return Err(WireError::Event),
            FieldAction::Read(StringField::Kind) => return Err(WireError::Kind),
            FieldAction::Read(StringField::Key | StringField::Value)
            | FieldAction::Address
            | FieldAction::Skip => State::Skip(length),
        };
        Ok(())
    }

    /// Closes the field and the messages that end at this position.
    fn close_finished(&mut self) -> Result<(), WireError> {
        match self.state {
            State::Skip(0) => self.state = NEXT_FIELD,
            State::String(field, 0) => {
                self.object.read(field, &self.string)?;
                self.state = NEXT_FIELD;
            }
            _ => {}
        }
        while let Some((message, end)) = self.open.last().copied() {
            if self.position < end {
                return Ok(());
            }
            if !matches!(self.state, NEXT_FIELD) {
                return Err(WireError::Overrun);
            }
            self.open.pop();
            self.object.leave(message);
        }
        // Only a watch has something after its last message: the next one.
        if matches!(self.state, NEXT_FIELD) {
            self.state = State::FrameLength(0, 0);
        }
        Ok(())
    }
}
