//! `webhook run`: wires the parts together.

use std::sync::Arc;
use std::time::Duration;

use isp_client::{ClientError, connect};
use isp_runtime::program::{Program, ProgramError};
use prometheus_client::registry::Registry;
use thiserror::Error;
use tracing::info;

use crate::admission::{Admission, Cache, router};
use crate::bundle::BundleKeeper;
use crate::certs::{IssuedKeeper, LifetimesError, OwnKeeper, ServedCertificate};
use crate::cli::{RunArgs, Source};
use crate::metrics::Metrics;
use crate::serve::{ServeError, Server, tls};

/// Time limit for the shutdown: late calls are still served for a moment, then those in flight
/// finish.
const GRACE: Duration = Duration::from_secs(8);

/// Why the webhook cannot run.
#[derive(Debug, Error)]
#[allow(missing_docs, reason = "the error messages document the variants")]
pub enum RunError {
    #[error(transparent)]
    Lifetimes(#[from] LifetimesError),
    #[error(transparent)]
    Client(#[from] ClientError),
    #[error(transparent)]
    Serve(#[from] ServeError),
    #[error(transparent)]
    Program(#[from] ProgramError),
}

/// Runs until a signal requests the shutdown.
pub async fn run(arguments: RunArgs) -> Result<(), RunError> {
    let mut program = Program::start()?;
    let callers = arguments.callers();
    let certificates = arguments.certificates;
    let lifetimes = certificates.lifetimes()?;
    let (metrics, mut registry) = (Arc::new(Metrics::default()), Registry::default());
    metrics.register(&mut registry);
    let certificate = ServedCertificate::new(lifetimes.overlap, metrics.clone(), program.readiness());
    let trust = certificate.trusted();
    let tls = tls(certificate.serving(), callers.as_ref()).map_err(ServeError::from)?;
    let client = connect().await?;
    let cache = Arc::new(Cache::new(certificates.namespace.clone()));
    let (admission, inventory) = Admission::new(cache.clone(), arguments.redirect_image, metrics.clone());
    let router = router(Arc::new(admission));
    let server = Server::bind(arguments.listen, tls, router, metrics.clone()).await?;
    program.spawn_endless("cache", cache.run(client.clone(), program.readiness()));
    program.spawn_endless("inventory", inventory.run(client.clone()));
    program.serve_admin(arguments.admin, registry).await?;
    info!(address = %arguments.listen, name = certificates.server(), "started");

    program.spawn("server", server.run(program.shutdown()));
    let place = (certificates.namespace.as_str(), certificates.secret.as_str());
    let name = certificates.server();
    match certificates.source {
        Source::Own => {
            let names = vec![format!("{name}.cluster.local"), name];
            let keeper = OwnKeeper::new(client.clone(), place, lifetimes, names, certificate);
            program.spawn_endless("certificates", keeper.run());
        }
        Source::Secret => {
            let keeper = IssuedKeeper::new(client.clone(), place, name, certificate);
            program.spawn_endless("certificates", keeper.run());
        }
    }
    let bundle = BundleKeeper::new(client, trust, lifetimes.overlap, metrics);
    program.spawn_endless("bundle", bundle.run());
    Ok(program.finish(GRACE).await?)
}
