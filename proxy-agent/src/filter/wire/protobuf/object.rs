//! The meaning of the messages and strings of a stream: the type of the current event, the labels
//! of the current object, and the summary of the stream. Knows nothing of bytes and lengths.

use std::sync::Arc;

use isp_api::view::{Narrowing, View};

use super::grammar::{Message, StringField};
use crate::filter::wire::{BodyKind, INITIAL_EVENTS_END, StreamSummary, WireError};

/// Follows the events and objects of a stream.
#[derive(Debug)]
pub(super) struct ObjectReader {
    narrowing: Arc<Narrowing>,
    kind: BodyKind,
    event: Option<EventType>,
    view: View,
    /// Whether the metadata of the current object have passed.
    labels_known: bool,
    key: String,
    value: String,
    summary: StreamSummary,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum EventType {
    Change,
    Bookmark,
    /// The object of the event is a Status.
    Error,
}

/// How to continue with a message.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Entered {
    Read,
    /// Its fields do not matter.
    Skip,
}

impl ObjectReader {
    pub(super) fn new(kind: BodyKind, narrowing: Arc<Narrowing>) -> Self {
        Self {
            narrowing,
            kind,
            event: None,
            view: View::Full,
            labels_known: false,
            key: String::new(),
            value: String::new(),
            summary: StreamSummary::default(),
        }
    }

    pub(super) fn summary(&self) -> StreamSummary {
        self.summary
    }

    /// Says whether the external addresses of the current Service are hidden.
    pub(super) fn hides_addresses(&self) -> bool {
        self.view > View::Full
    }

    pub(super) fn begin_event(&mut self) {
        self.event = None;
    }

    pub(super) fn enter(&mut self, message: Message) -> Result<Entered, WireError> {
        match message {
            Message::Extension if self.event.is_none() => return Err(WireError::Event),
            Message::Service | Message::List if self.event == Some(EventType::Error) => {
                return Ok(Entered::Skip);
            }
            Message::Service => (self.view, self.labels_known) = (View::Full, false),
            Message::Spec | Message::Status if !self.labels_known => return Err(WireError::Order),
            // These labels would come after the addresses to which they apply.
            Message::Meta if self.labels_known => return Err(WireError::Order),
            Message::Label | Message::Annotation => {
                self.key.clear();
                self.value.clear();
            }
            _ => {}
        }
        Ok(Entered::Read)
    }

    pub(super) fn leave(&mut self, message: Message) {
        match message {
            Message::Label => self.view = self.view.max(self.narrowing.of_label(&self.key, &self.value)),
            Message::Annotation => {
                let ends = self.key == INITIAL_EVENTS_END && self.value == "true";
                self.summary.initial_events_end |= ends && self.event == Some(EventType::Bookmark);
            }
            Message::Meta => self.labels_known = true,
            Message::Service if self.event != Some(EventType::Bookmark) => {
                self.summary.services += 1;
                self.summary.narrowed += u64::from(self.hides_addresses());
            }
            _ => {}
        }
    }

    /// Takes a string that matters.
    pub(super) fn read(&mut self, field: StringField, text: &[u8]) -> Result<(), WireError> {
        match field {
            StringField::EventType => {
                self.event = Some(match text {
                    b"ADDED" | b"MODIFIED" | b"DELETED" => EventType::Change,
                    b"BOOKMARK" => EventType::Bookmark,
                    b"ERROR" => EventType::Error,
                    _ => return Err(WireError::Event),
                });
            }
            StringField::Kind => {
                let requested: &[u8] = match (self.kind, self.event) {
                    (BodyKind::List, _) => b"ServiceList",
                    (BodyKind::Watch, Some(EventType::Error)) => b"Status",
                    (BodyKind::Watch, _) => b"Service",
                };
                if text != requested {
                    return Err(WireError::Kind);
                }
            }
            StringField::Key => self.key = String::from_utf8_lossy(text).into_owned(),
            StringField::Value => self.value = String::from_utf8_lossy(text).into_owned(),
        }
        Ok(())
    }
}
