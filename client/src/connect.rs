//! Creates an API client from the pod's ServiceAccount or from KUBECONFIG.

use std::time::Duration;

use kube::{Client, Config};
use thiserror::Error;

use crate::watch::WATCH_SECONDS;

const CONNECT_TIMEOUT: Duration = Duration::from_secs(5);
/// A connection that has been silent for longer than a watch lasts is dead.
const READ_TIMEOUT: Duration = Duration::from_secs(WATCH_SECONDS as u64 + 10);

/// Why the client could not be created.
#[derive(Debug, Error)]
#[allow(missing_docs, reason = "the error messages document the variants")]
pub enum ClientError {
    #[error("no API server is configured: {0}; run the program in a pod, or set KUBECONFIG")]
    Unknown(#[from] Box<kube::config::InferConfigError>),
    #[error("cannot create a client for the API server: {0}")]
    Client(#[from] Box<kube::Error>),
}

/// The client configuration, with timeouts.
pub async fn config() -> Result<Config, ClientError> {
    let mut config = Config::infer().await.map_err(Box::new)?;
    config.connect_timeout = Some(CONNECT_TIMEOUT);
    config.read_timeout = Some(READ_TIMEOUT);
    // The read timeout starts at each request, not at the last data on the same connection.
    config.reset_reader_on_write = true;
    // No automatic retries: callers decide again before they resend a failed request.
    config.default_retry = false;
    Ok(config)
}

/// A client with that configuration.
pub async fn connect() -> Result<Client, ClientError> {
    Ok(Client::try_from(config().await?).map_err(Box::new)?)
}
