//! The node's IngressSourceNode as the API server has it: followed, so that somebody's change or deletion is noticed.

use futures_util::StreamExt;
use isp_api::IngressSourceNode;
use isp_api::node::IngressSourceNodeStatus;
use isp_client::{events, named};
use kube::runtime::watcher::Event;
use kube::{Api, Client};
use serde_json::Value;
use tokio::sync::watch;

/// What is known of the object.
#[derive(Debug, Clone, Default, PartialEq)]
pub(crate) enum Observed {
    /// It has not been read, or cannot be.
    #[default]
    Unknown,
    Gone,
    /// Its status; null while it has none.
    Present(Value),
}

impl Observed {
    /// Whether something is missing of what was written. What others have added is theirs.
    pub(super) fn differs_from(&self, written: &IngressSourceNodeStatus) -> bool {
        match self {
            Self::Unknown => false,
            Self::Gone => true,
            Self::Present(status) => {
                // As it is sent: times have fewer digits there than here.
                let written = serde_json::to_value(written).unwrap_or_default();
                !covers(status, &written)
            }
        }
    }
}

/// Whether all that was written is there. Lists are maps to the API server, so that entries may have another order.
fn covers(there: &Value, written: &Value) -> bool {
    match (there, written) {
        (Value::Object(there), Value::Object(written)) => {
            written.iter().all(|(name, written)| there.get(name).is_some_and(|there| covers(there, written)))
        }
        (Value::Array(there), Value::Array(written)) => {
            written.iter().all(|written| there.iter().any(|there| covers(there, written)))
        }
        (there, written) => there == written,
    }
}

/// As long as an API server lets a watch last: there is one on every node, and a way that is dead is noticed by the connection's own pings.
const WATCH_SECONDS: u32 = 290;

/// Follows the object, for ever. While its kind is not there, the watch is tried again with pauses that grow, and says so once a minute.
pub(crate) async fn follow(client: Client, node: String, observed: watch::Sender<Observed>) {
    let nodes: Api<IngressSourceNode> = Api::all(client);
    let mut events = Box::pin(events(nodes, named(&node).timeout(WATCH_SECONDS)));
    let mut coming = Observed::Gone;
    while let Some(event) = events.next().await {
        let present = |object: IngressSourceNode| {
            Observed::Present(serde_json::to_value(object.status).unwrap_or_default())
        };
        let now = match event {
            Event::Init => {
                coming = Observed::Gone;
                continue;
            }
            Event::InitApply(object) => {
                coming = present(object);
                continue;
            }
            Event::InitDone => std::mem::take(&mut coming),
            Event::Apply(object) => present(object),
            Event::Delete(_) => Observed::Gone,
        };
        observed.send_if_modified(|before| {
            let changed = *before != now;
            *before = now;
            changed
        });
    }
}

#[cfg(test)]
mod tests {
    use isp_api::preserve::Mode;
    use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
    use k8s_openapi::jiff::Timestamp;
    use serde_json::json;

    use super::*;

    #[test]
    fn an_object_differs_when_something_that_was_written_is_missing_or_other() {
        let mut written = IngressSourceNodeStatus {
            revision: String::new(),
            pool: "default".to_owned(),
            mode: Mode::Filter,
            views: serde_json::from_value(json!([
                {"object": "a", "uid": "1", "generation": 1, "view": "Hidden", "relisted": true},
                {"object": "b", "uid": "2", "generation": 1, "view": "Hidden", "relisted": true},
            ]))
            .unwrap(),
            proxy_connected: true,
            last_sync: Some(Time(Timestamp::now())),
            conditions: Vec::new(),
        };
        let sent = serde_json::to_value(&written).unwrap();
        let stored: IngressSourceNodeStatus = serde_json::from_value(sent.clone()).unwrap();
        let stored = serde_json::to_value(stored).unwrap();
        assert!(!Observed::Present(stored.clone()).differs_from(&written), "a time with all its digits");
        let changed = |change: &dyn Fn(&mut Value)| {
            let mut status = stored.clone();
            change(&mut status);
            Observed::Present(status)
        };
        let more = changed(&|status| status["conditions"] = json!([{"type": "Theirs", "status": "True"}]));
        assert!(!more.differs_from(&written), "what others add is theirs");
        let order = changed(&|status| status["views"].as_array_mut().unwrap().reverse());
        assert!(!order.differs_from(&written));
        assert!(changed(&|status| status["proxyConnected"] = json!(false)).differs_from(&written));
        assert!(changed(&|status| status["views"][1]["relisted"] = json!(false)).differs_from(&written));
        assert!(
            changed(&|status| drop(status["views"].as_array_mut().unwrap().pop())).differs_from(&written)
        );
        assert!(Observed::Present(Value::Null).differs_from(&written));
        assert!(Observed::Gone.differs_from(&written));
        assert!(!Observed::Unknown.differs_from(&written), "it cannot be told");
        written.pool = "other".to_owned();
        assert!(Observed::Present(stored).differs_from(&written));
    }
}
