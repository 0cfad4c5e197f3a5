//! The control socket of a running lab's init: one JSON line each way, over a socket in the lab's
//! directory.

use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use serde::{Deserialize, Serialize};
use thiserror::Error;
use tokio::io::{AsyncBufReadExt, AsyncReadExt, AsyncWriteExt, BufReader};
use tokio::net::{UnixListener, UnixStream};

use super::supervise::{Status, Supervisor};

const LONGEST_REQUEST: u64 = 4096;

/// A request to init.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) enum Request {
    Status,
    /// Start a stopped component.
    Start(String),
    /// Stop a component; init does not restart it.
    Stop(String),
    /// Kill a component; init restarts it.
    Kill(String),
}

#[derive(Debug, Serialize, Deserialize)]
enum Answer {
    Status(Vec<Status>),
    Unknown(String),
}

/// Why a request to init failed.
#[derive(Debug, Error)]
pub enum ControlError {
    /// The socket could not be used.
    #[error("cannot connect to the lab at {}: {source}", path.display())]
    Io {
        /// The socket.
        path: PathBuf,
        /// The I/O error.
        source: io::Error,
    },
    /// The answer could not be parsed.
    #[error("unexpected response from the lab: {0}")]
    Answer(#[from] serde_json::Error),
    /// There is no such component.
    #[error("there is no component {0}; `status` lists them")]
    Unknown(String),
}

pub(super) async fn serve(path: &Path, supervisor: Arc<Supervisor>) -> io::Result<()> {
    let listener = UnixListener::bind(path)?;
    loop {
        let (stream, _) = listener.accept().await?;
        let supervisor = supervisor.clone();
        tokio::spawn(async move { answer(stream, &supervisor).await });
    }
}

async fn answer(mut stream: UnixStream, supervisor: &Supervisor) -> io::Result<()> {
    let (reader, mut writer) = stream.split();
    let mut line = String::new();
    BufReader::new(reader.take(LONGEST_REQUEST)).read_line(&mut line).await?;
    let answer = act(&serde_json::from_str(&line)?, supervisor);
    let mut text = serde_json::to_vec(&answer)?;
    text.push(b'\n');
    writer.write_all(&text).await
}

fn act(request: &Request, supervisor: &Supervisor) -> Answer {
    let (known, name) = match request {
        Request::Status => return Answer::Status(supervisor.status()),
        Request::Start(name) => (supervisor.start(name), name),
        Request::Stop(name) => (supervisor.stop(name), name),
        Request::Kill(name) => (supervisor.kill(name), name),
    };
    if known { Answer::Status(supervisor.status()) } else { Answer::Unknown(name.clone()) }
}

/// Sends a request and returns the status of all components after it.
pub(crate) async fn ask(path: &Path, request: &Request) -> Result<Vec<Status>, ControlError> {
    let io = |source| ControlError::Io { path: path.to_owned(), source };
    let mut stream = UnixStream::connect(path).await.map_err(io)?;
    let mut line = serde_json::to_vec(request)?;
    line.push(b'\n');
    stream.write_all(&line).await.map_err(io)?;
    let mut text = String::new();
    stream.read_to_string(&mut text).await.map_err(io)?;
    match serde_json::from_str(&text)? {
        Answer::Status(status) => Ok(status),
        Answer::Unknown(name) => Err(ControlError::Unknown(name)),
    }
}
