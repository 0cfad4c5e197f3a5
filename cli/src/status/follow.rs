//! Objects and reports as they change. The watches never give up; what goes wrong is said once until it works again.

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

/// Changes come in groups: a wave of agents, a step of the operator.
const MOMENT: Duration = Duration::from_millis(300);

enum News {
    Object(Box<Event<IngressSourcePreserve>>),
    Report(Box<Event<IngressSourceNode>>),
    Trouble(watcher::Error),
}

/// See the module.
pub(super) struct Following {
    news: BoxStream<'static, News>,
    objects: Collected<IngressSourcePreserve>,
    reports: Collected<IngressSourceNode>,
    in_trouble: bool,
}

impl Following {
    pub(super) fn new(client: &Client, name: Option<&str>) -> Self {
        let config = || watcher::Config::default().page_size(100).timeout(WATCH_SECONDS);
        let chosen = name.map_or_else(config, |name| config().fields(&format!("metadata.name={name}")));
        let objects = watch(Api::all(client.clone()), chosen).default_backoff();
        let objects =
            objects.map(|event| event.map_or_else(News::Trouble, |event| News::Object(Box::new(event))));
        let reports = watch(Api::all(client.clone()), config()).default_backoff();
        let reports =
            reports.map(|event| event.map_or_else(News::Trouble, |event| News::Report(Box::new(event))));
        Self {
            news: stream::select(objects, reports).boxed(),
            objects: Collected::default(),
            reports: Collected::default(),
            in_trouble: false,
        }
    }

    /// Waits for a change, and a moment for more to come. What is known then.
    pub(super) async fn change(&mut self) -> (Vec<IngressSourcePreserve>, Vec<IngressSourceNode>) {
        loop {
            let Some(news) = self.news.next().await else {
                // Watches have no end.
                return std::future::pending().await;
            };
            self.take(news);
            sleep(MOMENT).await;
            while let Some(Some(news)) = self.news.next().now_or_never() {
                self.take(news);
            }
            if let (Some(objects), Some(reports)) = (self.objects.complete(), self.reports.complete()) {
                return (objects.values().cloned().collect(), reports.values().cloned().collect());
            }
        }
    }

    fn take(&mut self, news: News) {
        match news {
            News::Object(event) => drop(self.objects.fold(*event, |object| object)),
            News::Report(event) => drop(self.reports.fold(*event, |report| report)),
            // It fell behind, and everything is read anew.
            News::Trouble(watcher::Error::WatchError(status)) if status.code == 410 => return,
            News::Trouble(error) => {
                if !std::mem::replace(&mut self.in_trouble, true) {
                    eprintln!("warning: the watch failed: {}; it is tried again", chain(&error));
                }
                return;
            }
        }
        self.in_trouble = false;
    }
}
