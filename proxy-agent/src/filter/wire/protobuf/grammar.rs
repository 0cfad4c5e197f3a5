//! The messages on the way to a Service's addresses, and the numbers of their fields. What is not named here is
//! skipped.

/// What a response body holds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Body {
    /// One ServiceList in an envelope.
    List,
    /// Events, each behind its length, each with one Service in an envelope.
    Watch,
}

/// A message, as far as its fields matter here.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Message {
    /// meta/v1 WatchEvent
    Event,
    /// runtime RawExtension: the object of an event
    Extension,
    /// runtime Unknown, behind its four magic bytes: what kind of object, and the object
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

/// What is done about a field.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Action {
    /// It is a message to go into.
    Enter(Message),
    /// It is a short string to look at.
    Read(Text),
    /// It is an external address.
    Address,
    /// It does not matter.
    Skip,
}

/// The strings that matter.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Text {
    EventType,
    Kind,
    Key,
    Value,
}

/// The four bytes before every object.
pub(super) const MAGIC: [u8; 4] = *b"k8s\0";

/// The tag that an address gets: number 15, which neither message with addresses has, of the same one byte.
pub(in crate::filter::wire) const NOTHING: u8 = (15 << 3) | LENGTH_DELIMITED;
pub(super) const LENGTH_DELIMITED: u8 = 2;

impl Message {
    /// What is done about the field `number` of this message.
    pub(super) fn field(self, number: u64, body: Body) -> Action {
        use Action::{Address, Enter, Read, Skip};
        match (self, number) {
            (Self::Event, 1) => Read(Text::EventType),
            (Self::Event, 2) => Enter(Self::Extension),
            (Self::Extension, 1) => Enter(Self::Envelope),
            (Self::Envelope, 1) => Enter(Self::Type),
            (Self::Envelope, 2) => Enter(if body == Body::List { Self::List } else { Self::Service }),
            (Self::Type, 2) => Read(Text::Kind),
            (Self::List, 2) => Enter(Self::Service),
            (Self::Service, 1) => Enter(Self::Meta),
            (Self::Service, 2) => Enter(Self::Spec),
            (Self::Service, 3) => Enter(Self::Status),
            (Self::Meta, 11) => Enter(Self::Label),
            (Self::Meta, 12) => Enter(Self::Annotation),
            (Self::Label | Self::Annotation, 1) => Read(Text::Key),
            (Self::Label | Self::Annotation, 2) => Read(Text::Value),
            (Self::Spec, 5) | (Self::LoadBalancer, 1) => Address,
            (Self::Status, 1) => Enter(Self::LoadBalancer),
            _ => Skip,
        }
    }
}
