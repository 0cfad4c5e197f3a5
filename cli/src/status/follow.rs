//! Objects and reports as they change. The watches never give up; what goes wrong is said once until it works again.

use std::collections::BTreeMap;
use std::time::Duration;

use futures_util::stream::{self, BoxStream};
use futures_util::{FutureExt, StreamExt};
use isp_api::{IngressSourceNode, IngressSourcePreserve};
use isp_client::chain;
use kube::runtime::watcher::{self, Event};
use kube::runtime::{WatchStreamExt, watcher as watch};
use kube::{Api, Client, ResourceExt};
use tokio::time::sleep;

use crate::connection::WATCH_SECONDS;

/// Changes come in groups: a wave of agents, a step of the operator.
const MOMENT: Duration = Duration::from_millis(300);

enum News {
    Object(Box<Event<IngressSourcePreserve>>),
    Report(Box<Event<IngressSourceNode>>),
    Trouble(watcher::Error),
}

/// What is known of a kind.
struct Known<K> {
    now: BTreeMap<String, K>,
    coming: BTreeMap<String, K>,
    whole: bool,
}

impl<K> Default for Known<K> {
    fn default() -> Self {
        Self { now: BTreeMap::new(), coming: BTreeMap::new(), whole: false }
    }
}

impl<K: ResourceExt> Known<K> {
    fn take(&mut self, event: Event<K>) {
        match event {
            Event::Init => self.coming.clear(),
            Event::InitApply(object) => drop(self.coming.insert(object.name_any(), object)),
            Event::InitDone => {
                self.now = std::mem::take(&mut self.coming);
                self.whole = true;
            }
            Event::Apply(object) => drop(self.now.insert(object.name_any(), object)),
            Event::Delete(object) => drop(self.now.remove(&object.name_any())),
        }
    }
}

/// See the module.
pub(super) struct Following {
    news: BoxStream<'static, News>,
    objects: Known<IngressSourcePreserve>,
    reports: Known<IngressSourceNode>,
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
            objects: Known::default(),
            reports: Known::default(),
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
            if self.objects.whole && self.reports.whole {
                let objects = self.objects.now.values().cloned().collect();
                return (objects, self.reports.now.values().cloned().collect());
            }
        }
    }

    fn take(&mut self, news: News) {
        match news {
            News::Object(event) => self.objects.take(*event),
            News::Report(event) => self.reports.take(*event),
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
