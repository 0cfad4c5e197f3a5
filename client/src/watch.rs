//! The events of a watch that never gives up. What goes wrong is said once in a while: an API server that is down for an hour
//! is one fact.

use std::fmt::Debug;
use std::time::Duration;

use futures_util::{Stream, StreamExt};
use kube::runtime::watcher::{self, Event};
use kube::runtime::{WatchStreamExt, watcher as watch};
use kube::{Api, Resource};
use serde::de::DeserializeOwned;
use tokio::time::Instant;
use tracing::{debug, info, warn};

use crate::error::plain_watch;

/// How long a watch lasts. A connection that is dead without a word is noticed soon after.
pub(crate) const WATCH_SECONDS: u32 = 60;
const ONCE_IN: Duration = Duration::from_mins(1);

/// A kind that can be watched.
pub trait Watched: Resource<DynamicType = ()> + Clone + Debug + DeserializeOwned + Send + 'static {}

impl<K: Resource<DynamicType = ()> + Clone + Debug + DeserializeOwned + Send + 'static> Watched for K {}

/// How everything is watched.
pub fn watching() -> watcher::Config {
    watcher::Config::default().timeout(WATCH_SECONDS)
}

/// The one object of this name: a right that is limited to a name allows this list and this watch, and no other.
pub fn named(name: &str) -> watcher::Config {
    watching().fields(&format!("metadata.name={name}"))
}

/// All events, for ever.
pub fn events<K: Watched>(api: Api<K>, config: watcher::Config) -> impl Stream<Item = Event<K>> + Send {
    let kind = K::plural(&());
    let mut said: Option<Instant> = None;
    let mut failing = false;
    watch(api, config).default_backoff().filter_map(move |event| {
        let event = match event {
            Ok(event) => {
                if std::mem::take(&mut failing) {
                    info!(%kind, "the watch works again");
                }
                Some(event)
            }
            Err(watcher::Error::WatchError(status)) if status.code == 410 => {
                debug!(%kind, "the watch fell behind; everything is read anew");
                None
            }
            Err(error) => {
                let error = plain_watch(&error);
                if said.is_none_or(|said| said.elapsed() > ONCE_IN) {
                    warn!(%kind, error, "the watch failed; it is tried again");
                    said = Some(Instant::now());
                } else {
                    debug!(%kind, error, "the watch failed again");
                }
                failing = true;
                None
            }
        };
        std::future::ready(event)
    })
}
