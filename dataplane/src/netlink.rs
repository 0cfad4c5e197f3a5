//! Tables as the bytes that the kernel takes, and the bytes of the kernel as values.
//!
//! Nothing here sends or receives: `isp-kernel` does. [`Batch`] collects operations into one
//! transaction. [`Query`] asks for what exists; [`Image`] compares it with the wanted table, and
//! [`Elements`] reads elements back. [`Observer`] follows notifications, [`Reply`] reads answers
//! and errors. [`conntrack`] lists and deletes tracked connections. [`Request`] adds and deletes
//! the routing of a pod's redirect, [`FoundRouting`] reads it back. [`Listing`] asks for everything
//! that a network namespace has, whoever made it.
//!
//! The bytes are those of `nft` 1.0.6 for the same text, so that any `nft` can list the rules.

mod attributes;
mod batch;
pub mod conntrack;
mod dump;
mod element;
mod event;
mod expression;
mod field;
mod image;
mod listing;
mod lower;
mod message;
mod nf_tables;
mod observer;
mod operation;
mod reply;
mod routing;
mod set;
mod value;

pub use attributes::{Attribute, Attributes, Malformed, Walk};
pub use batch::{Batch, Frame, Object, Subject, Verb};
pub use dump::{FoundTable, Query, read_generation};
pub use element::Elements;
pub use event::Process;
pub use image::{Difference, Image};
pub use listing::Listing;
pub use message::{Message, Messages};
pub use observer::{Change, Observer, TableName};
pub use operation::{Ownership, TableId, creation};
pub use reply::{Failure, Reply, errno};
pub use routing::{FoundRouting, Request};
