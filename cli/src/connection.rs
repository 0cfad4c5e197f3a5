//! The connection to the API server, configured as kubectl is.

use std::time::Duration;

use isp_client::chain;
use kube::config::{KubeConfigOptions, Kubeconfig};
use kube::{Client, Config};

use crate::cli::PlaceArgs;
use crate::error::CommandError;

const CONNECT_TIMEOUT: Duration = Duration::from_secs(5);
/// How long a watch lasts. A connection that is silent for longer is dead.
pub(crate) const WATCH_SECONDS: u32 = 25;
const READ_TIMEOUT: Duration = Duration::from_secs(WATCH_SECONDS as u64 + 5);

/// A client, and the address of its API server.
pub(crate) struct Connection {
    pub(crate) client: Client,
    server: String,
}

impl Connection {
    pub(crate) async fn open(place: &PlaceArgs) -> Result<Self, CommandError> {
        let mut config = find(place).await.map_err(CommandError::NoCluster)?;
        config.connect_timeout = Some(CONNECT_TIMEOUT);
        config.read_timeout = Some(READ_TIMEOUT);
        config.reset_reader_on_write = true;
        let server = config.cluster_url.to_string().trim_end_matches('/').to_owned();
        let client = Client::try_from(config).map_err(|error| CommandError::NoCluster(chain(&error)))?;
        Ok(Self { client, server })
    }

    /// The error for a request with this verb for this resource.
    pub(crate) fn problem(&self, verb: &'static str, resource: &str, error: kube::Error) -> CommandError {
        let resource = resource.to_owned();
        match error {
            kube::Error::Api(status) => match (status.code, resource.ends_with(".sourcepreserve.io")) {
                (401, _) => CommandError::Unauthorized { server: self.server.clone() },
                (403, _) => CommandError::Forbidden { verb, resource, answer: status.message.clone() },
                (404, true) if verb == "list" => CommandError::NotInstalled,
                _ => CommandError::Refused { verb, resource, answer: status.message.clone() },
            },
            other => CommandError::Unreachable { server: self.server.clone(), cause: chain(&other) },
        }
    }
}

async fn find(place: &PlaceArgs) -> Result<Config, String> {
    let options = KubeConfigOptions { context: place.context.clone(), ..KubeConfigOptions::default() };
    match (&place.kubeconfig, &place.context) {
        (Some(path), _) => {
            let kubeconfig = Kubeconfig::read_from(path).map_err(|error| chain(&error))?;
            Config::from_custom_kubeconfig(kubeconfig, &options).await.map_err(|error| chain(&error))
        }
        (None, Some(_)) => Config::from_kubeconfig(&options).await.map_err(|error| chain(&error)),
        (None, None) => Config::infer().await.map_err(|error| chain(&error)),
    }
}
