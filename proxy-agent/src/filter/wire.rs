//! Removes the external addresses of Services from the API server's responses while they stream by.
//!
//! Callers use [`Narrower`]: they feed it the bytes of a response, and forward the bytes that it
//! returns. Behind it is one reader per format.
//!
//! - kube-proxy requests protobuf. A list of thousands of Services is one message, with its length
//!   at its start. `protobuf` buffers nothing: it removes a field by giving it a number that no
//!   Service has, which changes one byte and no length. Every protobuf reader skips fields that it
//!   does not know. All other bytes stay the same.
//! - A kube-proxy that is configured for JSON gets the same from `json`, which buffers one object
//!   at a time.
//!
//! The decision needs the labels of an object before its addresses. In protobuf the API server
//! writes fields in the order of their numbers, metadata first. If it ever did not, the stream
//! would be a [`WireError`] and the agent would cut it, because a Service that must be narrowed
//! must not pass unchanged. The same holds for everything else that is unexpected.
//!
//! Pure: the result does not depend on how the bytes are split into pieces.

mod json;
mod protobuf;

use std::sync::Arc;

use hyper::body::Bytes;
use isp_api::view::Narrowing;
use thiserror::Error;

use self::json::JsonStream;
use self::protobuf::{ProtobufStream, UNKNOWN_FIELD_TAG};

/// The format of a response.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Format {
    Protobuf,
    Json,
}

impl Format {
    pub(crate) fn media_type(self) -> &'static str {
        match self {
            Self::Protobuf => "application/vnd.kubernetes.protobuf",
            Self::Json => "application/json",
        }
    }
}

/// The content of a response.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum BodyKind {
    /// One ServiceList.
    List,
    /// Watch events, each with one Service.
    Watch,
}

/// Why a stream is not a valid response of the API server. The agent has to cut it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
pub(crate) enum WireError {
    #[error("an object does not begin with the magic bytes")]
    Magic,
    #[error("a number or tag has more than ten bytes")]
    Varint,
    #[error("a field has a wire type that the API server does not use")]
    WireType,
    #[error("a field is longer than its message")]
    Overrun,
    #[error("an object has another kind than requested")]
    Kind,
    #[error("an event has an unknown type")]
    Event,
    #[error("the labels of a Service come after its addresses")]
    Order,
    #[error("the tag of an address field has an unusual encoding")]
    Tag,
    #[error("the JSON is neither a list nor an event of Services")]
    Syntax,
    #[error("an object is larger than {} MiB", json::LARGEST_OBJECT >> 20)]
    Large,
    #[error("the stream ends in the middle of an object")]
    Truncated,
}

/// A summary of the stream so far.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct StreamSummary {
    /// Services in a list, or in events other than bookmarks.
    pub(crate) services: u64,
    /// Services with a narrowed label.
    pub(crate) narrowed: u64,
    /// Whether the bookmark that ends the initial events of a watch has passed.
    pub(crate) initial_events_end: bool,
}

/// The annotation of the bookmark that ends the initial events of a watch.
const INITIAL_EVENTS_END: &str = "k8s.io/initial-events-end";

/// Narrows one response body.
#[derive(Debug)]
pub(crate) struct Narrower {
    reader: Reader,
    /// Whether to change the body, or only to follow it.
    rewrite: bool,
}

#[derive(Debug)]
enum Reader {
    Protobuf(ProtobufStream),
    Json(JsonStream),
}

impl Narrower {
    pub(crate) fn new(format: Format, kind: BodyKind, narrowing: Arc<Narrowing>, rewrite: bool) -> Self {
        let reader = match format {
            Format::Protobuf => Reader::Protobuf(ProtobufStream::new(kind, narrowing, rewrite)),
            Format::Json => Reader::Json(JsonStream::new(kind, narrowing, rewrite)),
        };
        Self { reader, rewrite }
    }

    /// Takes the next bytes and returns the bytes to forward. Those may be none while an object is
    /// incomplete.
    pub(crate) fn feed(&mut self, chunk: Bytes) -> Result<Bytes, WireError> {
        match &mut self.reader {
            Reader::Protobuf(stream) => {
                let tags = stream.feed(&chunk)?;
                if tags.is_empty() {
                    return Ok(chunk);
                }
                let mut chunk = Vec::from(chunk);
                for tag in tags {
                    chunk[tag] = UNKNOWN_FIELD_TAG;
                }
                Ok(chunk.into())
            }
            Reader::Json(stream) => {
                let mut narrowed = Vec::new();
                stream.feed(&chunk, &mut narrowed)?;
                // A body that is only followed passes without delay.
                Ok(if self.rewrite { narrowed.into() } else { chunk })
            }
        }
    }

    /// Checks that the body may end here.
    pub(crate) fn finish(&self) -> Result<(), WireError> {
        let complete = match &self.reader {
            Reader::Protobuf(stream) => stream.is_complete(),
            Reader::Json(stream) => stream.is_complete(),
        };
        if complete { Ok(()) } else { Err(WireError::Truncated) }
    }

    pub(crate) fn summary(&self) -> StreamSummary {
        match &self.reader {
            Reader::Protobuf(stream) => stream.summary(),
            Reader::Json(stream) => stream.summary(),
        }
    }
}
