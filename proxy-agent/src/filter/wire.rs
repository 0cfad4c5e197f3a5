//! Taking the external addresses out of Services in the API server's answers, as they stream by.
//!
//! [`Narrower`] is all that callers see: bytes in, the bytes that may be passed on out, and what was seen on the way. Behind it
//! are two readers. kube-proxy asks for protobuf, and a list of thousands of Services arrives as one message whose length is
//! written at its start. Nothing buffers it: a field is taken out by giving it a number that no Service has, which changes one
//! byte and no length. Every reader of protobuf skips fields it does not know, so to kube-proxy the field is not there. All other
//! bytes stay as they came. A kube-proxy that was told to speak JSON gets the same from `json`, which holds one object at a time.
//!
//! The decision needs an object's labels before its addresses. In protobuf the API server writes fields in the order of their
//! numbers, metadata first; should it ever not, the stream is [`Broken`] and is cut, for a Service that should be narrowed must
//! not pass unseen. The same holds for everything else that is not as expected.
//!
//! Pure: however the bytes are cut into pieces, the same come out.

mod json;
mod protobuf;

use std::sync::Arc;

use hyper::body::Bytes;
use isp_api::view::Narrowing;
use thiserror::Error;

use self::json::Objects;
pub(crate) use self::protobuf::Body;
use self::protobuf::{NOTHING, Scanner};

/// How an answer is written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Format {
    Protobuf,
    Json,
}

impl Format {
    /// Its name in headers.
    pub(crate) fn media_type(self) -> &'static str {
        match self {
            Self::Protobuf => "application/vnd.kubernetes.protobuf",
            Self::Json => "application/json",
        }
    }
}

/// A stream that is not what the API server sends. It has to be cut.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
pub(crate) enum Broken {
    #[error("an object without its leading bytes")]
    Magic,
    #[error("a number or tag of more than ten bytes")]
    Varint,
    #[error("a field of a kind that the API server does not use")]
    WireType,
    #[error("a field that is longer than the message around it")]
    Overrun,
    #[error("an object of another kind than was asked for")]
    Kind,
    #[error("an event of an unknown type")]
    Event,
    #[error("a Service whose labels come after its addresses")]
    Order,
    #[error("an address field in an unusual encoding")]
    Tag,
    #[error("JSON that is no list and no event of Services")]
    Syntax,
    #[error("an object of more than {} MiB", json::LARGEST_OBJECT >> 20)]
    Large,
    #[error("an end in the middle of an object")]
    Truncated,
}

/// What has passed so far.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Seen {
    /// Services, in a list or in events other than bookmarks.
    pub(crate) services: u64,
    /// Services that carry a narrowed label.
    pub(crate) narrowed: u64,
    /// Whether the bookmark came that ends the initial events of a watch.
    pub(crate) initial_events_end: bool,
}

/// The annotation of the bookmark that ends the initial events of a watch.
const INITIAL_EVENTS_END: &str = "k8s.io/initial-events-end";

/// Goes through one response body.
#[derive(Debug)]
pub(crate) struct Narrower {
    reader: Reader,
    /// Whether something is changed, or only looked at.
    rewrite: bool,
}

#[derive(Debug)]
enum Reader {
    Protobuf(Scanner),
    Json(Objects),
}

impl Narrower {
    pub(crate) fn new(format: Format, body: Body, narrowing: Arc<Narrowing>, rewrite: bool) -> Self {
        let reader = match format {
            Format::Protobuf => Reader::Protobuf(Scanner::new(body, narrowing, rewrite)),
            Format::Json => Reader::Json(Objects::new(body, narrowing, rewrite)),
        };
        Self { reader, rewrite }
    }

    /// Takes the next bytes and gives those that may be passed on; none while an object is not whole.
    pub(crate) fn feed(&mut self, chunk: Bytes) -> Result<Bytes, Broken> {
        match &mut self.reader {
            Reader::Protobuf(scanner) => {
                let places = scanner.feed(&chunk)?;
                if places.is_empty() {
                    return Ok(chunk);
                }
                let mut chunk = Vec::from(chunk);
                for place in places {
                    chunk[place] = NOTHING;
                }
                Ok(chunk.into())
            }
            Reader::Json(objects) => {
                let mut narrowed = Vec::new();
                objects.feed(&chunk, &mut narrowed)?;
                // What is only looked at is not held back.
                Ok(if self.rewrite { narrowed.into() } else { chunk })
            }
        }
    }

    /// Whether the body may end here.
    pub(crate) fn finish(&self) -> Result<(), Broken> {
        let whole = match &self.reader {
            Reader::Protobuf(scanner) => scanner.is_whole(),
            Reader::Json(objects) => objects.is_whole(),
        };
        if whole { Ok(()) } else { Err(Broken::Truncated) }
    }

    pub(crate) fn seen(&self) -> Seen {
        match &self.reader {
            Reader::Protobuf(scanner) => scanner.seen(),
            Reader::Json(objects) => objects.seen(),
        }
    }
}
