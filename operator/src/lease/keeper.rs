//! Executes the steps of the election and publishes until when this replica may act.

use std::sync::Arc;
use std::time::Duration;

use futures_util::StreamExt;
use futures_util::stream::BoxStream;
use isp_client::{events, plain};
use k8s_openapi::api::coordination::v1::Lease;
use k8s_openapi::jiff::Timestamp;
use kube::api::PostParams;
use kube::runtime::watcher::Event;
use kube::{Api, Client};
use tokio::sync::watch;
use tokio::time::{Instant, sleep, sleep_until, timeout};
use tracing::{debug, info, warn};

use super::{Election, Step, Timing};
use crate::metrics::Metrics;
use crate::observer::config;

/// The name of the Lease.
const NAME: &str = "sourcepreserve-operator";
/// Delay before retrying a failed request.
const AGAIN: Duration = Duration::from_secs(1);
/// Time limit for releasing the Lease on shutdown, and the delay before retrying a failed request.
const RELEASE: Duration = Duration::from_secs(4);
const RELEASE_AGAIN: Duration = Duration::from_millis(200);

/// Until when this replica may act, if it leads. Receivers are notified when leadership begins or
/// ends, not on each renewal.
#[derive(Clone, Debug)]
pub(crate) struct Leadership(watch::Receiver<Option<Instant>>);

impl Leadership {
    /// Whether this replica is the leader now.
    pub(crate) fn leads(&self) -> bool {
        self.0.borrow().is_some_and(|until| until > Instant::now())
    }

    /// Waits until leadership begins or ends. Cancel-safe.
    pub(crate) async fn changed(&mut self) {
        if self.0.changed().await.is_err() {
            std::future::pending::<()>().await;
        }
    }
}

/// Holds the Lease, or waits for it.
pub(crate) struct Keeper {
    api: Api<Lease>,
    election: Election,
    timing: Timing,
    watch: BoxStream<'static, Event<Lease>>,
    leads: watch::Sender<Option<Instant>>,
    metrics: Arc<Metrics>,
    failing: bool,
}

impl Keeper {
    pub(crate) fn new(
        client: Client,
        namespace: &str,
        identity: String,
        timing: Timing,
        metrics: Arc<Metrics>,
    ) -> Self {
        let api: Api<Lease> = Api::namespaced(client, namespace);
        let this_one = config().fields(&format!("metadata.name={NAME}"));
        Self {
            watch: events(api.clone(), this_one).boxed(),
            api,
            election: Election::new(identity, timing),
            timing,
            leads: watch::Sender::new(None),
            metrics,
            failing: false,
        }
    }

    pub(crate) fn leadership(&self) -> Leadership {
        Leadership(self.leads.subscribe())
    }

    /// Runs the election until `end`, then releases the Lease so that another replica can take over
    /// at once.
    pub(crate) async fn run(mut self, end: impl Future<Output = ()>) {
        tokio::select! {
            () = self.keep() => {}
            () = end => {}
        }
        self.leads.send_replace(None);
        if timeout(RELEASE, self.release()).await.is_err() {
            warn!("cannot release the lease; it will expire");
        }
        self.metrics.leads(false);
    }

    /// Releases the Lease, if this replica holds it. The shutdown may have cancelled a renewal that
    /// the API server carries out all the same, so the known version may be out of date.
    async fn release(&mut self) {
        while let Some(lease) = self.election.released(Timestamp::now()) {
            match self.api.replace(NAME, &PostParams::default(), &lease).await {
                Ok(_) => return info!("released the lease"),
                Err(error) => debug!(error = plain(&error), "cannot release the lease; retrying"),
            }
            sleep(RELEASE_AGAIN).await;
            if let Ok(lease) = self.api.get_opt(NAME).await {
                self.election.observe(lease, Instant::now());
            }
        }
    }

    async fn keep(&mut self) {
        loop {
            let now = Instant::now();
            self.announce(now);
            match self.election.decide(now) {
                Step::Wait(time) => {
                    let wake = self
                        .election
                        .leads_until()
                        .filter(|until| *until > now)
                        .map_or(time, |until| time.min(until));
                    tokio::select! {
                        () = sleep_until(wake) => {}
                        Some(event) = self.watch.next() => self.hear(event),
                    }
                }
                step => self.act(step, now).await,
            }
        }
    }

    fn hear(&mut self, event: Event<Lease>) {
        match event {
            Event::Apply(lease) | Event::InitApply(lease) => {
                self.election.observe(Some(lease), Instant::now());
            }
            Event::Delete(lease) if !self.election.knows_better(&lease) => {
                self.election.observe(None, Instant::now());
            }
            Event::Delete(_) | Event::Init | Event::InitDone => {}
        }
    }

    async fn act(&mut self, step: Step, began: Instant) {
        let parameters = PostParams::default();
        let held = self.election.held(NAME, Timestamp::now());
        let request = async {
            match step {
                Step::Create => self.api.create(&parameters, &held).await.map(Some),
                Step::Take | Step::Renew => self.api.replace(NAME, &parameters, &held).await.map(Some),
                Step::Read | Step::Wait(_) => self.api.get_opt(NAME).await,
            }
        };
        let failure = match timeout(self.timing.renew, request).await {
            Ok(Ok(lease)) if step == Step::Read => {
                self.election.observe(lease, Instant::now());
                None
            }
            Ok(Ok(Some(lease))) => {
                self.election.wrote(lease, began);
                None
            }
            Ok(Ok(None)) => None,
            Ok(Err(kube::Error::Api(status)))
                if [404, 409].contains(&status.code) && step != Step::Create =>
            {
                debug!(answer = status.message, "the lease was changed by another replica");
                self.election.lost_the_race();
                None
            }
            Ok(Err(kube::Error::Api(status))) if status.reason == "AlreadyExists" => {
                self.election.lost_the_race();
                None
            }
            Ok(Err(error)) => Some(plain(&error)),
            Err(_) => Some(format!("no answer within {:?}", self.timing.renew)),
        };
        match failure {
            None if std::mem::take(&mut self.failing) => info!("reached the lease again"),
            None => {}
            Some(error) => {
                self.election.failed(Instant::now() + AGAIN);
                if std::mem::replace(&mut self.failing, true) {
                    debug!(error, "still cannot reach the lease");
                } else {
                    warn!(error, "cannot reach the lease; retrying");
                }
            }
        }
    }

    /// Publishes until when this replica may act.
    fn announce(&self, now: Instant) {
        let until = self.election.leads_until().filter(|until| *until > now);
        let (did, does) = (self.leads.borrow().is_some(), until.is_some());
        self.leads.send_if_modified(|leads| {
            *leads = until;
            did != does
        });
        if did != does {
            let holder = self.election.holder().unwrap_or("nobody");
            if does {
                info!("this replica is the leader");
            } else {
                info!(holder, "this replica is no longer the leader");
            }
            self.metrics.leads(does);
        }
    }
}
