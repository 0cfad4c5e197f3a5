//! A client: with the pod's own account, or as KUBECONFIG says.

use std::time::Duration;

use kube::{Client, Config};
use thiserror::Error;

use crate::watch::WATCH_SECONDS;

const CONNECT_TIMEOUT: Duration = Duration::from_secs(5);
/// A connection on which nothing has come for longer than a watch lasts is dead.
const READ_TIMEOUT: Duration = Duration::from_secs(WATCH_SECONDS as u64 + 10);

/// Why there is no client.
#[derive(Debug, Error)]
#[allow(missing_docs, reason = "the messages say it")]
pub enum ClientError {
    #[error("no API server is known: {0}; run it in a pod, or name a kubeconfig in KUBECONFIG")]
    Unknown(#[from] Box<kube::config::InferConfigError>),
    #[error("cannot make a client of the API server: {0}")]
    Client(#[from] Box<kube::Error>),
}

/// How a client is to behave.
pub async fn config() -> Result<Config, ClientError> {
    let mut config = Config::infer().await.map_err(Box::new)?;
    config.connect_timeout = Some(CONNECT_TIMEOUT);
    config.read_timeout = Some(READ_TIMEOUT);
    // Counted from the request, not from the last one on the same connection.
    config.reset_reader_on_write = true;
    // What failed is decided anew before it is sent again.
    config.default_retry = false;
    Ok(config)
}

/// A client.
pub async fn connect() -> Result<Client, ClientError> {
    Ok(Client::try_from(config().await?).map_err(Box::new)?)
}
