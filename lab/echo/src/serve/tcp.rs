//! Raw TCP: one line that says who is talking to whom, then every byte comes back until the caller ends its side.
//!
//! A connection may stay open and silent for as long as it likes: that is what long-lived connections are tested
//! with.

use std::sync::Arc;

use tokio::io::{AsyncWriteExt as _, copy};

use super::{connections::Connection, stop::Stop};
use crate::answer::{Answer, Place};

pub(super) async fn converse(connection: Connection, place: Arc<Place>, mut stop: Stop) {
    let Connection { mut stream, ends } = connection;
    let Ok(greeting) = Answer::tcp(ends, &place).line() else { return };
    let (mut from, mut to) = stream.split();
    let echo = async {
        to.write_all(&greeting).await?;
        copy(&mut from, &mut to).await
    };
    // Whatever goes wrong goes wrong on the caller's connection, and the caller sees it.
    tokio::select! {
        _ = echo => {}
        () = stop.requested() => {}
    }
    stream.shutdown().await.ok();
}
