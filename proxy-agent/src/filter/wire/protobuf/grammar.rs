//! The protobuf messages that lead to the addresses of a Service, and the numbers of their fields.
//! Other fields are skipped.

use crate::filter::wire::BodyKind;

/// A message with fields that matter.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Message {
    /// meta/v1 WatchEvent
    Event,
    /// runtime RawExtension: the object of an event
    Extension,
    /// runtime Unknown, after four magic bytes: the type of an object, and the object
    Envelope,
    /// runtime TypeMeta
    Type,
    List,
    Service,
    /// meta/v1 ObjectMeta
    Meta,
    /// An entry of a map from string to string
    Label,
    Annotation,
    Spec,
    Status,
    LoadBalancer,
}

/// How to handle a field.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum FieldAction {
    /// The field is a message to enter.
    Enter(Message),
    /// The field is a short string to read.
    Read(StringField),
    /// The field is an external address.
    Address,
    Skip,
}

/// The strings that matter.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum StringField {
    EventType,
    Kind,
    Key,
    Value,
}

/// The four bytes before every object.
pub(super) const MAGIC: [u8; 4] = *b"k8s\0";

/// The tag that replaces the tag of an address. Neither message with addresses has a field 15, and
/// the tag has one byte, as those of the addresses.
pub(in crate::filter::wire) const UNKNOWN_FIELD_TAG: u8 = (15 << 3) | LENGTH_DELIMITED;
pub(super) const LENGTH_DELIMITED: u8 = 2;

impl Message {
    /// Returns how to handle the field `number` of this message.
    pub(super) fn field(self, number: u64, kind: BodyKind) -> FieldAction {
        use FieldAction::{Address, Enter, Read, Skip};
        match (self, number) {
            (Self::Event, 1) => Read(StringField::EventType),
            (Self::Event, 2) => Enter(Self::Extension),
            (Self::Extension, 1) => Enter(Self::Envelope),
            (Self::Envelope, 1) => Enter(Self::Type),
            (Self::Envelope, 2) => Enter(if kind == BodyKind::List { Self::List } else { Self::Service }),
            (Self::Type, 2) => Read(StringField::Kind),
            (Self::List, 2) => Enter(Self::Service),
            (Self::Service, 1) => Enter(Self::Meta),
            (Self::Service, 2) => Enter(Self::Spec),
            (Self::Service, 3) => Enter(Self::Status),
            (Self::Meta, 11) => Enter(Self::Label),
            (Self::Meta, 12) => Enter(Self::Annotation),
            (Self::Label | Self::Annotation, 1) => Read(StringField::Key),
            (Self::Label | Self::Annotation, 2) => Read(StringField::Value),
            (Self::Spec, 5) | (Self::LoadBalancer, 1) => Address,
            (Self::Status, 1) => Enter(Self::LoadBalancer),
            _ => Skip,
        }
    }
}
