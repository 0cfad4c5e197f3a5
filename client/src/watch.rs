//! Watches that retry forever. Failures are logged at most once a minute, so an hour of downtime
//! does not flood the log.

use std::fmt::Debug;
use std::time::Duration;

use backon::ExponentialBuilder;
use futures_util::stream::{self, BoxStream};
use futures_util::{Stream, StreamExt};
use kube::runtime::utils::Backoff;
use kube::runtime::watcher::{self, Event, ExponentialBackoff};
use kube::{Api, Resource};
use serde::de::DeserializeOwned;
use tokio::time::{Instant, sleep};
use tracing::{debug, info, warn};

use crate::error::plain_watch;

#[cfg(test)]
mod tests;

/// Duration of a watch request. A dead connection is detected soon after.
pub(crate) const WATCH_SECONDS: u32 = 60;
const ONCE_IN: Duration = Duration::from_mins(1);
/// The pause after the first failure and the longest one. Each is prolonged by up to its own
/// length, so that agents do not come back all at once. After an outage of the API server a node
/// learns of changes within twice the longest pause; kube's default of 30 s would leave stale
/// endpoints for a minute.
const FIRST_PAUSE: Duration = Duration::from_millis(800);
const LONGEST_PAUSE: Duration = Duration::from_secs(10);

/// A kind that can be watched.
pub trait Watched: Resource + Clone + Debug + DeserializeOwned + Send + 'static {}

impl<K: Resource + Clone + Debug + DeserializeOwned + Send + 'static> Watched for K {}

/// The watch configuration used for all kinds.
pub fn watching() -> watcher::Config {
    watcher::Config::default().timeout(WATCH_SECONDS)
}

/// Selects the object with this name. RBAC rules with `resourceNames` allow this list and watch,
/// and no other.
pub fn named(name: &str) -> watcher::Config {
    watching().fields(&format!("metadata.name={name}"))
}

/// The events of a watch. The stream never ends.
pub fn events<K: Watched>(api: Api<K>, config: watcher::Config) -> impl Stream<Item = Event<K>> + Send {
    let kind = api.resource_url().rsplit('/').next().unwrap_or_default().to_owned();
    let events = watcher::watcher(api, config).boxed();
    let watch = Watch { kind, events, backoff: backoff(), failing: false, said: None };
    stream::unfold(watch, |mut watch| async {
        let event = watch.next().await?;
        Some((event, watch))
    })
}

fn backoff() -> ExponentialBackoff {
    ExponentialBuilder::default()
        .with_min_delay(FIRST_PAUSE)
        .with_max_delay(LONGEST_PAUSE)
        .with_jitter()
        .without_max_times()
        .into()
}

struct Watch<K> {
    /// The plural name, from the URL.
    kind: String,
    events: BoxStream<'static, watcher::Result<Event<K>>>,
    backoff: ExponentialBackoff,
    failing: bool,
    /// When a failure was last logged as a warning.
    said: Option<Instant>,
}

impl<K: Watched> Watch<K> {
    async fn next(&mut self) -> Option<Event<K>> {
        loop {
            match self.events.next().await? {
                // `Init` comes before the first request, so it does not prove that the watch works.
                Ok(Event::Init) => return Some(Event::Init),
                Ok(event) => {
                    self.works();
                    return Some(event);
                }
                Err(error) => {
                    self.fails(&error);
                    sleep(self.backoff.next().unwrap_or(LONGEST_PAUSE)).await;
                }
            }
        }
    }

    fn works(&mut self) {
        self.backoff.reset();
        if std::mem::take(&mut self.failing) {
            info!(kind = self.kind, "the watch recovered");
        }
    }

    fn fails(&mut self, error: &watcher::Error) {
        let kind = self.kind.as_str();
        if matches!(error, watcher::Error::WatchError(status) if status.code == 410) {
            debug!(kind, "the watch fell behind; listing everything again");
            return;
        }
        self.failing = true;
        let error = plain_watch(error);
        if self.said.is_none_or(|said| said.elapsed() > ONCE_IN) {
            warn!(kind, error, "the watch failed; retrying");
            self.said = Some(Instant::now());
        } else {
            debug!(kind, error, "the watch failed again");
        }
    }
}
