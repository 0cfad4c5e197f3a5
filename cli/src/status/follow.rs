//! Objects and reports as they change. The watches never give up; a failure is reported once until
//! they work again.

use std::time::Duration;

use futures_util::stream::{self, BoxStream};
use futures_util::{FutureExt, StreamExt};
use isp_api::{IngressSourceNode, IngressSourcePreserve};
use isp_client::{Collected, chain};
use kube::runtime::watcher::{self, Event};
use kube::runtime::{WatchStreamExt, watcher as watch};
use kube::{Api, Client};
use tokio::time::sleep;

use crate::connection::WATCH_SECONDS;

/// Changes come in groups, such as a wave of agents, so more are awaited for this long.
const GROUPING: Duration = Duration::from_millis(300);

enum Update {
    Object(Box<Event<IngressSourcePreserve>>),
    Report(Box<Event<IngressSourceNode>>),
    Failure(watcher::Error),
}

/// Watches of objects and of reports.
pub(super) struct Following {
    updates: BoxStream<'static, Update>,
    objects: Collected<IngressSourcePreserve>,
    reports: Collected<IngressSourceNode>,
    failing: bool,
}

impl Following {
    pub(super) fn new(client: &Client, name: Option<&str>) -> Self {
        let config = || watcher::Config::default().page_size(100).timeout(WATCH_SECONDS);
        let chosen = name.map_or_else(config, |name| config().fields(&format!("metadata.name={name}")));
        let objects = watch(Api::all(client.clone()), chosen).default_backoff();
        let objects =
            objects.map(|event| event.map_or_else(Update::Failure, |event| Update::Object(Box::new(event))));
        let reports = watch(Api::all(client.clone()), config()).default_backoff();
        let reports =
            reports.map(|event| event.map_or_else(Update::Failure, |event| Update::Report(Box::new(event))));
        Self {
            updates: stream::select(objects, reports).boxed(),
            objects: Collected::default(),
            reports: Collected::default(),
            failing: false,
        }
    }

    /// Waits for a change, and shortly for more. Nothing is lost if the wait is cancelled.
    pub(super) async fn change(&mut self) {
        loop {
            let Some(update) = self.updates.next().await else {
                // Watches have no end.
                return std::future::pending().await;
            };
            self.take(update);
            sleep(GROUPING).await;
            while let Some(Some(update)) = self.updates.next().now_or_never() {
                self.take(update);
            }
            if self.objects.complete().is_some() && self.reports.complete().is_some() {
                return;
            }
        }
    }

    /// The present objects and reports. None: they have not been read yet.
    pub(super) fn known(&self) -> Option<(Vec<IngressSourcePreserve>, Vec<IngressSourceNode>)> {
        let (objects, reports) = (self.objects.complete()?, self.reports.complete()?);
        Some((objects.values().cloned().collect(), reports.values().cloned().collect()))
    }

    fn take(&mut self, update: Update) {
        match update {
            Update::Object(event) => drop(self.objects.fold(*event, |object| object)),
            Update::Report(event) => drop(self.reports.fold(*event, |report| report)),
            // The watch fell behind; the watcher lists again.
            Update::Failure(watcher::Error::WatchError(status)) if status.code == 410 => return,
            Update::Failure(error) => {
                if !std::mem::replace(&mut self.failing, true) {
                    eprintln!("warning: the watch failed: {}; trying again", chain(&error));
                }
                return;
            }
        }
        self.failing = false;
    }
}
