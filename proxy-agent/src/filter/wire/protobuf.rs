//! The scanner itself: a state machine that is fed chunks of any size and says which bytes have to change.

mod grammar;
mod varint;

#[cfg(test)]
mod tests;

use std::sync::Arc;

use isp_api::view::{Narrowing, View};

pub(crate) use self::grammar::Body;
pub(super) use self::grammar::NOTHING;
use self::grammar::{Action, LENGTH_DELIMITED, MAGIC, Message, Text};
use self::varint::Varint;
use self::varint::VarintStep::{Done, More};
use super::{Broken, INITIAL_EVENTS_END, Seen};

/// The longest string that is looked at: a label's key, with its prefix. What is longer is none of those that matter.
const LONGEST_TEXT: u64 = 317;

/// Goes through one response body.
#[derive(Debug)]
pub(super) struct Scanner {
    narrowing: Arc<Narrowing>,
    body: Body,
    /// Whether bytes are changed, or only looked at.
    rewrite: bool,
    state: State,
    /// How many bytes have passed.
    position: u64,
    /// The messages around the current byte, each with the position at which it ends.
    open: Vec<(Message, u64)>,
    object: Object,
    seen: Seen,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum State {
    /// The length before an event: bytes read, value so far.
    FrameLength(u8, u32),
    /// The leading bytes of an object: how many have passed.
    Magic(usize),
    /// The tag of a field.
    Tag(Varint),
    /// The length of a field.
    Length(Action, Varint),
    /// A number that does not matter.
    Number(Varint),
    /// Bytes that do not matter: how many are left.
    Skip(u64),
    /// A string that matters: how many bytes are left.
    Text(Text, u64),
}

const NEXT_FIELD: State = State::Tag(Varint::START);

/// What is known of the current event and object.
#[derive(Debug, Default)]
struct Object {
    event: Option<Event>,
    view: View,
    /// Whether the labels have passed.
    labels_known: bool,
    text: Vec<u8>,
    key: String,
    value: String,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Event {
    Change,
    Bookmark,
    /// Its object is a Status.
    Error,
}

impl Scanner {
    pub(super) fn new(body: Body, narrowing: Arc<Narrowing>, rewrite: bool) -> Self {
        let (state, open) = match body {
            Body::List => (State::Magic(0), vec![(Message::Envelope, u64::MAX)]),
            Body::Watch => (State::FrameLength(0, 0), Vec::new()),
        };
        Self {
            narrowing,
            body,
            rewrite,
            state,
            position: 0,
            open,
            object: Object::default(),
            seen: Seen::default(),
        }
    }

    pub(super) fn seen(&self) -> Seen {
        self.seen
    }

    /// Whether the body may end here: between events, or with the envelope of a list.
    pub(super) fn is_whole(&self) -> bool {
        match self.body {
            Body::List => self.open.len() == 1 && self.state == NEXT_FIELD,
            Body::Watch => self.open.is_empty() && self.state == State::FrameLength(0, 0),
        }
    }

    /// Takes the next bytes and gives the places of those that have to become `NOTHING`; most have none.
    pub(super) fn feed(&mut self, chunk: &[u8]) -> Result<Vec<usize>, Broken> {
        let (mut rest, mut places) = (chunk, Vec::new());
        while !rest.is_empty() {
            let at_most = |left: u64| usize::try_from(left).unwrap_or(usize::MAX).min(rest.len());
            let taken = match self.state {
                State::Skip(left) => {
                    let taken = at_most(left);
                    self.state = State::Skip(left - taken as u64);
                    taken
                }
                State::Text(text, left) => {
                    let taken = at_most(left);
                    self.object.text.extend_from_slice(&rest[..taken]);
                    self.state = State::Text(text, left - taken as u64);
                    taken
                }
                _ => {
                    if self.step(rest[0])? {
                        places.push(chunk.len() - rest.len());
                    }
                    1
                }
            };
            self.position += taken as u64;
            self.settle()?;
            rest = &rest[taken..];
        }
        Ok(places)
    }

    /// One byte that is neither skipped nor a string's; whether it has to change.
    fn step(&mut self, byte: u8) -> Result<bool, Broken> {
        match self.state {
            State::FrameLength(read, value) => {
                let value = (value << 8) | u32::from(byte);
                if read < 3 {
                    self.state = State::FrameLength(read + 1, value);
                } else {
                    self.object.event = None;
                    self.open.push((Message::Event, self.position + 1 + u64::from(value)));
                    self.state = NEXT_FIELD;
                }
            }
            State::Magic(passed) => {
                if MAGIC.get(passed) != Some(&byte) {
                    return Err(Broken::Magic);
                }
                self.state = if passed + 1 == MAGIC.len() { NEXT_FIELD } else { State::Magic(passed + 1) };
            }
            State::Tag(tag) => return self.tag(tag, byte),
            State::Length(action, length) => match length.add(byte)? {
                More(length) => self.state = State::Length(action, length),
                Done(length) => self.begin(action, length)?,
            },
            State::Number(number) => {
                self.state = match number.add(byte)? {
                    More(number) => State::Number(number),
                    Done(_) => NEXT_FIELD,
                };
            }
            State::Skip(_) | State::Text(..) => {}
        }
        Ok(false)
    }

    fn tag(&mut self, so_far: Varint, byte: u8) -> Result<bool, Broken> {
        let tag = match so_far.add(byte)? {
            More(tag) => {
                self.state = State::Tag(tag);
                return Ok(false);
            }
            Done(tag) => tag,
        };
        let message = self.open.last().map_or(Message::Event, |(message, _)| *message);
        let mut action = message.field(tag >> 3, self.body);
        let wire_type = tag & 7;
        if action != Action::Skip && wire_type != u64::from(LENGTH_DELIMITED) {
            return Err(Broken::WireType);
        }
        let mut changes = false;
        if action == Action::Address {
            changes = self.rewrite && self.object.view > View::Full;
            if changes && so_far != Varint::START {
                return Err(Broken::Tag);
            }
            action = Action::Skip;
        }
        self.state = match wire_type {
            0 => State::Number(Varint::START),
            1 => State::Skip(8),
            2 => State::Length(action, Varint::START),
            5 => State::Skip(4),
            _ => return Err(Broken::WireType),
        };
        Ok(changes)
    }

    /// A field of known length starts with the next byte.
    fn begin(&mut self, action: Action, length: u64) -> Result<(), Broken> {
        let end = (self.position + 1).checked_add(length).ok_or(Broken::Overrun)?;
        if self.open.last().is_some_and(|(_, parent)| end > *parent) {
            return Err(Broken::Overrun);
        }
        self.state = match action {
            Action::Enter(message) => self.enter(message, end, length)?,
            Action::Read(text) if length <= LONGEST_TEXT => {
                self.object.text.clear();
                State::Text(text, length)
            }
            Action::Read(Text::EventType) => return Err(Broken::Event),
            Action::Read(Text::Kind) => return Err(Broken::Kind),
            Action::Read(Text::Key | Text::Value) | Action::Address | Action::Skip => State::Skip(length),
        };
        Ok(())
    }

    fn enter(&mut self, message: Message, end: u64, length: u64) -> Result<State, Broken> {
        let object = &mut self.object;
        match message {
            Message::Extension if object.event.is_none() => return Err(Broken::Event),
            Message::Service | Message::List if object.event == Some(Event::Error) => {
                return Ok(State::Skip(length));
            }
            Message::Service => (object.view, object.labels_known) = (View::Full, false),
            Message::Spec | Message::Status if !object.labels_known => return Err(Broken::Order),
            // Labels that come after the addresses that they are about.
            Message::Meta if object.labels_known => return Err(Broken::Order),
            Message::Label | Message::Annotation => {
                object.key.clear();
                object.value.clear();
            }
            _ => {}
        }
        self.open.push((message, end));
        Ok(if message == Message::Envelope { State::Magic(0) } else { NEXT_FIELD })
    }

    /// Finishes what ends at this position.
    fn settle(&mut self) -> Result<(), Broken> {
        match self.state {
            State::Skip(0) => self.state = NEXT_FIELD,
            State::Text(text, 0) => {
                self.text(text)?;
                self.state = NEXT_FIELD;
            }
            _ => {}
        }
        while let Some((message, end)) = self.open.last().copied() {
            if self.position < end {
                return Ok(());
            }
            if !matches!(self.state, NEXT_FIELD) {
                return Err(Broken::Overrun);
            }
            self.open.pop();
            self.leave(message);
        }
        // Only a watch has something after its last message: the next one.
        if matches!(self.state, NEXT_FIELD) {
            self.state = State::FrameLength(0, 0);
        }
        Ok(())
    }

    fn leave(&mut self, message: Message) {
        let object = &mut self.object;
        match message {
            Message::Label => {
                object.view = object.view.max(self.narrowing.of_label(&object.key, &object.value));
            }
            Message::Annotation => {
                let ends = object.key == INITIAL_EVENTS_END && object.value == "true";
                self.seen.initial_events_end |= ends && object.event == Some(Event::Bookmark);
            }
            Message::Meta => object.labels_known = true,
            Message::Service if object.event != Some(Event::Bookmark) => {
                self.seen.services += 1;
                self.seen.narrowed += u64::from(object.view > View::Full);
            }
            _ => {}
        }
    }

    fn text(&mut self, text: Text) -> Result<(), Broken> {
        let object = &mut self.object;
        let read = &object.text[..];
        match text {
            Text::EventType => {
                object.event = Some(match read {
                    b"ADDED" | b"MODIFIED" | b"DELETED" => Event::Change,
                    b"BOOKMARK" => Event::Bookmark,
                    b"ERROR" => Event::Error,
                    _ => return Err(Broken::Event),
                });
            }
            Text::Kind => {
                let wanted: &[u8] = match (self.body, object.event) {
                    (Body::List, _) => b"ServiceList",
                    (Body::Watch, Some(Event::Error)) => b"Status",
                    (Body::Watch, _) => b"Service",
                };
                if read != wanted {
                    return Err(Broken::Kind);
                }
            }
            Text::Key => object.key = String::from_utf8_lossy(read).into_owned(),
            Text::Value => object.value = String::from_utf8_lossy(read).into_owned(),
        }
        Ok(())
    }
}
