//! Asks once over raw TCP: reads the server's line, sends one and waits for it to come back, so both directions are
//! known to work.

use std::net::{IpAddr, SocketAddr};

use tokio::io::{AsyncBufReadExt as _, AsyncReadExt as _, AsyncWriteExt as _, BufReader};

use super::{Answered, LARGEST_ANSWER, answered, failure::Failure, target::connect};

pub(super) async fn ask(address: SocketAddr, bind: Option<IpAddr>, seq: u64) -> Result<Answered, Failure> {
    let mut stream = connect(address, bind).await?;
    let (from, mut to) = stream.split();
    let mut from = BufReader::new(from);

    let mut greeting = Vec::new();
    (&mut from).take(LARGEST_ANSWER as u64).read_until(b'\n', &mut greeting).await?;
    if greeting.last() != Some(&b'\n') {
        return Err(Failure::Closed("before the server's line was complete".to_owned()));
    }

    let sent = format!("ask {seq}\n");
    to.write_all(sent.as_bytes()).await?;
    let mut back = vec![0; sent.len()];
    from.read_exact(&mut back).await?;
    if back != sent.as_bytes() {
        return Err(Failure::BadAnswer(format!(
            "sent {sent:?}, {:?} came back",
            String::from_utf8_lossy(&back)
        )));
    }
    Ok(answered(&greeting))
}
