//! Raw TCP: sends one line with both addresses, then echoes every byte until the caller closes its
//! side.
//!
//! A connection may stay open and idle indefinitely, to test long-lived connections.

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
    // Errors are ignored here: they concern this connection only, and the caller sees them.
    tokio::select! {
        _ = echo => {}
        () = stop.requested() => {}
    }
    stream.shutdown().await.ok();
}
