//! Publishes notices as Events on the IngressSourcePreserve or the Service. Publishing never blocks
//! the reconcile loop: if the queue is full, a notice is dropped and counted.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use isp_api::IngressSourcePreserve;
use isp_client::plain;
use isp_plan::plan::{About, Notice};
use k8s_openapi::api::core::v1::{ObjectReference, Service};
use kube::runtime::events::{Event, EventType, Recorder, Reporter};
use kube::{Client, Resource};
use tokio::sync::mpsc;
use tokio::time::timeout;
use tracing::{debug, info};

use crate::metrics::Metrics;

/// Capacity of the queue.
const WAITING: usize = 256;
/// How many topics are remembered, so that repetitions increase the count of an existing Event.
const REMEMBERED: usize = 256;
const DEADLINE: Duration = Duration::from_secs(5);
const LAST_WORDS: Duration = Duration::from_secs(1);
/// The API server's limit for the note of an Event, in bytes.
const LONGEST: usize = 1024;

/// The sending side of the queue.
pub(crate) struct Notices {
    queue: mpsc::Sender<Notice>,
    /// The notices of the last plan; a notice that is still true is not sent again.
    last: Vec<Notice>,
    metrics: Arc<Metrics>,
}

impl Notices {
    /// The queue's sender, and the task that publishes the notices.
    pub(crate) fn new(client: Client, identity: String, metrics: Arc<Metrics>) -> (Self, Publisher) {
        let (queue, waiting) = mpsc::channel(WAITING);
        let reporter =
            Reporter { controller: "sourcepreserve-operator".to_owned(), instance: Some(identity) };
        let publisher = Publisher { client, reporter, waiting, said: BTreeMap::new() };
        (Self { queue, last: Vec::new(), metrics }, publisher)
    }

    /// Queues the notices of a plan that the previous plan did not have.
    pub(crate) fn say(&mut self, notices: Vec<Notice>) {
        for notice in notices.iter().filter(|notice| !self.last.contains(notice)) {
            if self.queue.try_send(notice.clone()).is_err() {
                self.metrics.event_dropped();
            }
        }
        self.last = notices;
    }
}

/// Publishes queued notices one at a time.
pub(crate) struct Publisher {
    client: Client,
    reporter: Reporter,
    waiting: mpsc::Receiver<Notice>,
    /// The last message per object and reason. A recorder counts repetitions but ignores the
    /// message, so a new message needs a new recorder.
    said: BTreeMap<(About, String), (String, Recorder)>,
}

impl Publisher {
    /// Publishes until `end`, then tries for up to [`LAST_WORDS`] to publish the rest of the queue.
    pub(crate) async fn run(mut self, end: impl Future<Output = ()>) {
        tokio::select! {
            () = self.publish_all() => {}
            () = end => drop(timeout(LAST_WORDS, self.publish_all()).await),
        }
    }

    /// Publishes until all senders are dropped.
    async fn publish_all(&mut self) {
        while let Some(Notice { about, warning, reason, message }) = self.waiting.recv().await {
            info!(about = topic(&about), reason, text = message, "said");
            let event = Event {
                type_: if warning { EventType::Warning } else { EventType::Normal },
                action: reason.clone(),
                reason: reason.clone(),
                note: Some(shortened(&message, LONGEST).to_owned()),
                secondary: None,
            };
            let reference = reference(&about);
            let recorder = self.recorder((about, reason), message);
            match timeout(DEADLINE, recorder.publish(&event, &reference)).await {
                Ok(Ok(())) => {}
                Ok(Err(error)) => debug!(error = plain(&error), "cannot publish an Event"),
                Err(_) => debug!("timed out publishing an Event"),
            }
        }
    }

    fn recorder(&mut self, topic: (About, String), message: String) -> Recorder {
        if let Some((said, recorder)) = self.said.get(&topic)
            && *said == message
        {
            return recorder.clone();
        }
        if self.said.len() >= REMEMBERED {
            self.said.clear();
        }
        let recorder = Recorder::new(self.client.clone(), self.reporter.clone());
        self.said.insert(topic, (message, recorder.clone()));
        recorder
    }
}

/// The object that an Event refers to. Events of cluster-scoped objects go to the namespace
/// `default`.
fn reference(about: &About) -> ObjectReference {
    let (api_version, kind, namespace, name, uid) = match about {
        About::Object { name, uid } => {
            (IngressSourcePreserve::api_version(&()), IngressSourcePreserve::kind(&()), None, name, uid)
        }
        About::Service { key, uid } => {
            (Service::api_version(&()), Service::kind(&()), Some(key.namespace.clone()), &key.name, uid)
        }
    };
    ObjectReference {
        api_version: Some(api_version.into_owned()),
        kind: Some(kind.into_owned()),
        namespace,
        name: Some(name.clone()),
        uid: Some(uid.clone()),
        ..ObjectReference::default()
    }
}

/// The object's name for the log.
fn topic(about: &About) -> String {
    match about {
        About::Object { name, .. } => format!("ingresssourcepreserve/{name}"),
        About::Service { key, .. } => format!("service/{key}"),
    }
}

/// The longest prefix of at most `bytes` bytes that ends at a character boundary.
fn shortened(text: &str, bytes: usize) -> &str {
    let mut end = bytes.min(text.len());
    while !text.is_char_boundary(end) {
        end -= 1;
    }
    &text[..end]
}

#[cfg(test)]
mod tests {
    use isp_plan::Key;

    use super::*;

    #[test]
    fn an_event_names_its_object_and_goes_to_its_namespace() {
        let about = About::Service { key: Key::new("shop", "web"), uid: "u".to_owned() };
        let service = reference(&about);
        assert_eq!((service.api_version.as_deref(), service.kind.as_deref()), (Some("v1"), Some("Service")));
        assert_eq!((service.namespace.as_deref(), service.uid.as_deref()), (Some("shop"), Some("u")));
        assert_eq!(topic(&about), "service/shop/web");
        let object = reference(&About::Object { name: "one".to_owned(), uid: "u".to_owned() });
        assert_eq!(object.api_version.as_deref(), Some("sourcepreserve.io/v1alpha1"));
        assert_eq!((object.namespace, object.name.as_deref()), (None, Some("one")));
    }

    #[test]
    fn a_long_text_is_cut_between_characters() {
        assert_eq!(shortened("short", 10), "short");
        assert_eq!(shortened("für", 2), "f");
        assert_eq!(shortened("für", 3), "fü");
    }
}
