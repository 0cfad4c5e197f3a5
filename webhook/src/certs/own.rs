//! Self-managed certificates: the replicas share their CAs in a Secret, and each replica signs its
//! own certificate. The first replica to write wins; the others use its CAs.
//!
//! The installation provides the Secret, empty. The webhook never creates it: permission to create
//! Secrets in a namespace gives access to the token of every ServiceAccount in it
//! (`docs/adr/0013-the-webhooks-account-leads-nowhere.md`). While the Secret is missing, a replica
//! keeps its current certificate.

use std::time::Duration;

use isp_client::plain;
use k8s_openapi::api::core::v1::Secret;
use k8s_openapi::jiff::Timestamp;
use kube::api::PostParams;
use kube::{Api, Client};
use tokio::time::{sleep, timeout};
use tracing::{debug, error, info, warn};

use super::rotation::{self, Authorities, Lifetimes, Step};
use super::served::ServedCertificate;
use super::stored::{self, Found};
use super::trust::Trust;
use super::{make, wait_until};
use crate::named_object::{Known, NamedObject};

/// Timeout of a request.
const TIMEOUT: Duration = Duration::from_secs(10);
/// Minimum time between two writes. Otherwise replicas with clocks days apart would keep replacing
/// each other's CA in a tight loop.
const REST: Duration = Duration::from_secs(1);

pub(crate) struct OwnKeeper {
    api: Api<Secret>,
    namespace: String,
    name: String,
    secret: NamedObject<Secret>,
    lifetimes: Lifetimes,
    /// The DNS names of the webhook.
    names: Vec<String>,
    certificate: ServedCertificate,
    /// No write before this time.
    rests_until: Timestamp,
    /// Whether the last write failed.
    failing: bool,
    /// The last complaint that was logged.
    complaint: String,
}

/// The result of a write.
enum Written {
    Done,
    /// Another replica wrote first.
    Lost,
}

impl OwnKeeper {
    pub(crate) fn new(
        client: Client,
        (namespace, name): (&str, &str),
        lifetimes: Lifetimes,
        names: Vec<String>,
        certificate: ServedCertificate,
    ) -> Self {
        let api: Api<Secret> = Api::namespaced(client, namespace);
        Self {
            secret: NamedObject::new(api.clone(), name),
            api,
            namespace: namespace.to_owned(),
            name: name.to_owned(),
            lifetimes,
            names,
            certificate,
            rests_until: Timestamp::MIN,
            failing: false,
            complaint: String::new(),
        }
    }

    /// Never returns.
    pub(crate) async fn run(mut self) {
        loop {
            let wake = self.look().await.min(self.certificate.look(Timestamp::now()));
            tokio::select! {
                () = self.secret.changed() => {}
                () = sleep(wait_until(wake)) => {}
            }
        }
    }

    /// Serves a certificate based on the Secret, and takes the rotation step that is due. Returns
    /// when to look again.
    async fn look(&mut self) -> Timestamp {
        let now = Timestamp::now();
        let secret = match self.secret.known() {
            Known::Unread => return Timestamp::MAX,
            Known::Absent => {
                self.complain(self.missing());
                // The CA of the current certificate stays trusted. No CA is left to sign another
                // one.
                self.certificate.trust(now, &Trust::default());
                return Timestamp::MAX;
            }
            Known::Present(secret) => secret.clone(),
        };
        let found = match stored::read(&secret) {
            Ok(found) => found,
            Err(foreign) => {
                self.complain(foreign.to_string());
                return Timestamp::MAX;
            }
        };
        self.complain(complaint(&found, now));
        let renewal = self.serve(now, &found.authorities);
        let (due, step) = rotation::due(now, &found.authorities, &self.lifetimes);
        let due = due.max(self.rests_until);
        if due > now {
            return renewal.min(due);
        }
        self.rests_until = now + REST;
        match self.step(now, step, secret, found.authorities).await {
            Ok(Written::Done) => {
                self.failing = false;
                info!(?step, secret = self.name, "the CAs changed");
                now
            }
            Ok(Written::Lost) => {
                debug!(?step, secret = self.name, "another replica was faster");
                now
            }
            Err(error) => {
                if std::mem::replace(&mut self.failing, true) {
                    debug!(?step, secret = self.name, error, "still cannot write the Secret");
                } else {
                    warn!(?step, secret = self.name, error, "cannot write the Secret; retrying");
                }
                self.rests_until
            }
        }
    }

    /// Signs a new certificate if one is due. Returns when the next one is due.
    fn serve(&mut self, now: Timestamp, authorities: &Authorities) -> Timestamp {
        self.certificate.trust(now, &authorities.trust());
        let Some(current) = authorities.current.as_ref().filter(|current| current.check(now).is_ok()) else {
            return Timestamp::MAX;
        };
        self.certificate.authority_ends(current.lifespan.ends);
        let signers = Trust::from_iter([current.certificate.clone()]);
        let due = match self.certificate.leaf() {
            // The CA cannot renew a certificate that already expires together with it.
            Some(leaf) if leaf.signers == signers && leaf.lifespan.ends >= current.lifespan.ends => {
                Timestamp::MAX
            }
            Some(leaf) if leaf.signers == signers => leaf.lifespan.two_thirds(),
            _ => self.certificate.opens(now, &signers),
        };
        if due > now {
            return due;
        }
        match make::leaf(now, self.lifetimes.leaf, &self.names, current) {
            Ok(leaf) => self.certificate.serve(leaf),
            Err(error) => error!(%error, "no certificate to serve; retrying"),
        }
        now + REST
    }

    async fn step(
        &mut self,
        now: Timestamp,
        step: Step,
        secret: Secret,
        authorities: Authorities,
    ) -> Result<Written, String> {
        let lifetime = self.lifetimes.authority;
        let authorities = authorities
            .after(step, now, || make::authority(now, lifetime))
            .map_err(|error| error.to_string())?;
        let secret = stored::write(secret, &authorities);
        match timeout(TIMEOUT, self.put(&secret)).await {
            Ok(result) => result.map_err(|error| plain(&error)),
            Err(_) => Err(format!("no answer within {TIMEOUT:?}")),
        }
    }

    async fn put(&mut self, secret: &Secret) -> kube::Result<Written> {
        match self.api.replace(&self.name, &PostParams::default(), secret).await {
            Ok(secret) => {
                self.secret.take_answer(Some(secret));
                Ok(Written::Done)
            }
            // The Secret was changed or deleted since it was read.
            Err(kube::Error::Api(status)) if status.code == 409 || status.code == 404 => {
                let secret = self.api.get_opt(&self.name).await?;
                self.secret.take_answer(secret);
                Ok(Written::Lost)
            }
            Err(error) => Err(error),
        }
    }

    fn missing(&self) -> String {
        let Self { namespace, name, .. } = self;
        format!(
            "Secret {name} does not exist in namespace {namespace}, and the webhook may not create it: apply the manifests or \
             upgrade the release again, or run kubectl -n {namespace} create secret generic {name}"
        )
    }

    /// Logs a complaint once.
    fn complain(&mut self, complaint: String) {
        if complaint != self.complaint && !complaint.is_empty() {
            error!(secret = self.name, complaint, "the Secret of the CAs is invalid");
        }
        self.complaint = complaint;
    }
}

/// The CAs in the Secret that are unusable and will be replaced. API servers reject the new
/// certificate until they have the new bundle.
fn complaint(found: &Found, now: Timestamp) -> String {
    let unreadable = found.unusable.iter().cloned();
    let current = found.authorities.current.as_ref().and_then(|current| current.check(now).err());
    let all = unreadable.chain(current.map(|why| ("ca.crt", why)));
    let lines: Vec<_> =
        all.map(|(key, why)| format!("{key} is unusable and will be replaced: {why}")).collect();
    lines.join("; ")
}
