//! Follows kube-proxy's own configuration. The kubelet updates these files, and notifies nobody.

use std::net::SocketAddr;
use std::path::PathBuf;
use std::time::Duration;

use isp_runtime::health::Pulse;
use isp_runtime::shutdown::Shutdown;
use tokio::time::sleep;
use tracing::{info, warn};

use super::serving::{Identity, MirrorScope, ServingError, mirror};
use crate::filter::upstream::{ApiServer, ClientCertificate, Upstream};

/// How often the agent reads the files. The kubelet updates them about once a minute.
const INTERVAL: Duration = Duration::from_secs(10);

/// kube-proxy's own files, the directory that kube-proxy sees instead, and the API server and
/// certificate that the agent has read from the files.
pub(crate) struct KubeProxyFiles {
    pub(crate) kubeconfig: PathBuf,
    pub(crate) directory: PathBuf,
    pub(crate) address: SocketAddr,
    pub(crate) identity: Identity,
    pub(crate) scope: MirrorScope,
    pub(crate) api_server: ApiServer,
    pub(crate) certificate: Option<ClientCertificate>,
    pub(crate) upstream: Upstream,
}

impl KubeProxyFiles {
    pub(crate) fn mirror(&self) -> Result<(), ServingError> {
        mirror(&self.kubeconfig, self.address, &self.identity, &self.directory, self.scope)
    }

    /// Follows the files. Does not return.
    pub(crate) async fn follow(mut self, pulse: Pulse, shutdown: Shutdown) {
        loop {
            sleep(INTERVAL).await;
            pulse.beat();
            self.api_server.shut_down_on_change(&self.kubeconfig, &shutdown);
            self.present_certificate();
            if let Err(error) = self.mirror() {
                warn!(%error, "cannot mirror kube-proxy's configuration; retrying");
            }
        }
    }

    fn present_certificate(&mut self) {
        match ClientCertificate::read(&self.kubeconfig) {
            Ok(now) if now == self.certificate => {}
            // A certificate and a key that do not match may be in the middle of an update.
            Ok(now) => match self.upstream.present(now.as_ref()) {
                Ok(()) => {
                    info!("using the new client certificate of kube-proxy");
                    self.certificate = now;
                }
                Err(error) => warn!(%error, "cannot use the new client certificate of kube-proxy; retrying"),
            },
            Err(error) => warn!(%error, "cannot read the client certificate of kube-proxy; retrying"),
        }
    }
}
