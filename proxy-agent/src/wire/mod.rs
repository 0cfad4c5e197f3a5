//! Taking the external addresses out of Services in the API server's protobuf, as it streams by.
//!
//! kube-proxy asks for protobuf, and a list of thousands of Services arrives as one message whose length is written at its
//! start. Nothing here buffers it: a field is taken out by giving it a number that no Service has, which changes one byte and
//! no length. Every reader of protobuf skips fields it does not know, so to kube-proxy the field is not there. All
//! other bytes stay as they came.
//!
//! The decision needs an object's labels before its addresses. The API server writes fields in the order of their numbers,
//! metadata first; should it ever not, the stream is [`Broken`] and is cut, for a Service that should be narrowed must not pass
//! unseen. The same holds for everything else that is not as expected.
//!
//! Pure: bytes in, the same bytes with a few changed out, and what was seen on the way.

mod grammar;
mod scanner;
mod varint;

#[cfg(test)]
mod tests;

pub(crate) use grammar::Body;
pub(crate) use scanner::{Broken, Scanner, Seen};
