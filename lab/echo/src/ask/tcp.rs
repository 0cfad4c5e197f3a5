//! Raw TCP: the server sends a greeting line and then echoes everything, so that both directions
//! are tested. A single request exchanges one line.

use std::net::{IpAddr, SocketAddr};

use tokio::{
    io::{AsyncBufReadExt as _, AsyncReadExt as _, AsyncWriteExt as _, BufReader},
    net::TcpStream,
};

use super::{Answered, LARGEST_ANSWER, answered, failure::Failure, target::connect};

pub(super) async fn ask(address: SocketAddr, bind: Option<IpAddr>, seq: u64) -> Result<Answered, Failure> {
    let (mut conversation, greeting) = Conversation::open(address, bind).await?;
    conversation.exchange(&format!("ask {seq}\n")).await?;
    Ok(greeting)
}

/// A connection whose greeting line has been received.
pub(crate) struct Conversation(BufReader<TcpStream>);

impl Conversation {
    /// Connects. Returns the server's greeting too.
    pub(crate) async fn open(address: SocketAddr, bind: Option<IpAddr>) -> Result<(Self, Answered), Failure> {
        let mut stream = BufReader::new(connect(address, bind).await?);
        let mut greeting = Vec::new();
        (&mut stream).take(LARGEST_ANSWER as u64).read_until(b'\n', &mut greeting).await?;
        if greeting.last() != Some(&b'\n') {
            return Err(Failure::Closed("the server closed the connection within its first line".to_owned()));
        }
        Ok((Self(stream), answered(&greeting)))
    }

    /// Sends a line and waits until it is echoed.
    pub(crate) async fn exchange(&mut self, line: &str) -> Result<(), Failure> {
        self.0.write_all(line.as_bytes()).await?;
        let mut back = vec![0; line.len()];
        self.0.read_exact(&mut back).await?;
        if back != line.as_bytes() {
            let back = String::from_utf8_lossy(&back);
            return Err(Failure::BadAnswer(format!("sent {line:?}, {back:?} came back")));
        }
        Ok(())
    }
}
