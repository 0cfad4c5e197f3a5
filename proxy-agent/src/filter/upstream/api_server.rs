//! The API server as kube-proxy's kubeconfig describes it.

use std::fs;
use std::path::Path;

use http::Uri;
use http::uri::Scheme;
use isp_runtime::shutdown::Shutdown;
use rustls::pki_types::ServerName;
use tracing::warn;

use super::{UpstreamError, decode_base64, read_kubeconfig};

/// The address of the API server, and the CA that signed its certificate.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct ApiServer {
    pub(crate) address: Uri,
    /// The name in its certificate, if it differs from the host in the address.
    pub(super) server_name: Option<ServerName<'static>>,
    /// In PEM.
    pub(super) ca_bundle: Vec<u8>,
}

impl ApiServer {
    /// Reads the cluster of the current context, as kube-proxy does.
    pub(crate) fn read(kubeconfig: &Path) -> Result<Self, UpstreamError> {
        let path = || kubeconfig.to_owned();
        let config = read_kubeconfig(kubeconfig)?;
        let context =
            config.contexts.iter().find(|named| Some(&named.name) == config.current_context.as_ref());
        let context = context.and_then(|named| named.context.as_ref());
        let cluster_name = context.map(|context| &context.cluster);
        let cluster = config.clusters.iter().find(|named| Some(&named.name) == cluster_name);
        let cluster = cluster.and_then(|named| named.cluster.as_ref());
        let server = cluster.and_then(|cluster| cluster.server.clone()).unwrap_or_default();
        let bad = || UpstreamError::Server { path: path(), server: server.clone() };
        let (cluster, address) = (cluster.ok_or_else(bad)?, server.parse::<Uri>().map_err(|_| bad())?);
        if address.scheme() != Some(&Scheme::HTTPS) || address.authority().is_none() {
            return Err(bad());
        }
        if cluster.proxy_url.is_some() {
            return Err(UpstreamError::Proxy { path: path() });
        }
        let server_name = cluster.tls_server_name.clone().map(|name| {
            ServerName::try_from(name.clone()).map_err(|_| UpstreamError::ServerName { path: path(), name })
        });
        let bad_ca = |reason: String| UpstreamError::BadAuthority { path: path(), reason };
        let ca_bundle = match (&cluster.certificate_authority_data, &cluster.certificate_authority) {
            (Some(data), _) => decode_base64(data).map_err(bad_ca)?,
            (None, Some(file)) => {
                let file = kubeconfig.parent().unwrap_or(kubeconfig).join(file);
                fs::read(&file).map_err(|source| UpstreamError::Authority { path: file, source })?
            }
            (None, None) => {
                let reason = "it names none, and the agent does not trust the system's CAs";
                return Err(bad_ca(reason.to_owned()));
            }
        };
        Ok(Self { address, server_name: server_name.transpose()?, ca_bundle })
    }

    /// Ends the agent if the kubeconfig names another API server or CA. The kubelet restarts the
    /// agent, which then uses it. The rules in the kernel stay meanwhile.
    pub(crate) fn shut_down_on_change(&self, kubeconfig: &Path, shutdown: &Shutdown) {
        match Self::read(kubeconfig) {
            Ok(now) if now != *self => {
                warn!("kube-proxy's kubeconfig names another API server or CA; exiting to restart with it");
                shutdown.request();
            }
            Ok(_) => {}
            Err(error) => warn!(%error, "cannot read kube-proxy's kubeconfig; retrying"),
        }
    }
}
