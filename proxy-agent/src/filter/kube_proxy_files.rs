//! kube-proxy's own configuration, followed: the kubelet updates it, and nobody tells the agent.

use std::net::SocketAddr;
use std::path::PathBuf;
use std::time::Duration;

use isp_runtime::health::Pulse;
use isp_runtime::shutdown::Shutdown;
use tokio::time::sleep;
use tracing::{info, warn};

use crate::filter::serving::{Identity, Mirrored, ServingError, mirror};
use crate::node::upstream::{ClientCertificate, Place, Upstream};

/// How often the files are looked at; a kubelet updates them about once a minute.
const FOLLOW: Duration = Duration::from_secs(10);

/// kube-proxy's own files, and the directory in which it sees them.
pub(crate) struct Files {
    pub(crate) kubeconfig: PathBuf,
    pub(crate) directory: PathBuf,
    pub(crate) address: SocketAddr,
    pub(crate) identity: Identity,
    pub(crate) mirrored: Mirrored,
}

impl Files {
    pub(crate) fn mirror(&self) -> Result<(), ServingError> {
        mirror(&self.kubeconfig, self.address, &self.identity, &self.directory, self.mirrored)
    }

    /// Follows the cluster's own configuration of kube-proxy. One that names another API server or authority is taken by a new start:
    /// the kubelet sees to it, and the rules stay meanwhile. A new client certificate is presented from then on.
    pub(crate) async fn keep(
        self,
        place: Place,
        mut certificate: Option<ClientCertificate>,
        upstream: Upstream,
        pulse: Pulse,
        shutdown: Shutdown,
    ) {
        loop {
            sleep(FOLLOW).await;
            pulse.beat();
            match Place::read(&self.kubeconfig) {
                Ok(now) if now != place => {
                    warn!(
                        "kube-proxy's kubeconfig names another API server or authority: the agent ends, to be started with it"
                    );
                    shutdown.request();
                }
                Ok(_) => {}
                Err(error) => warn!(%error, "kube-proxy's kubeconfig cannot be read; it is tried again"),
            }
            match ClientCertificate::read(&self.kubeconfig) {
                Ok(now) if now == certificate => {}
                // A certificate and a key that do not belong together may be on their way to.
                Ok(now) => match upstream.present(now.as_ref()) {
                    Ok(()) => {
                        info!("kube-proxy has a new client certificate");
                        certificate = now;
                    }
                    Err(error) => {
                        warn!(%error, "kube-proxy's new client certificate cannot be used; it is tried again");
                    }
                },
                Err(error) => {
                    warn!(%error, "kube-proxy's client certificate cannot be read; it is tried again");
                }
            }
            if let Err(error) = self.mirror() {
                warn!(%error, "kube-proxy's configuration cannot be followed; it is tried again");
            }
        }
    }
}
