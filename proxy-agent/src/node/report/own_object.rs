//! Watches this node's IngressSourceNode, so that the agent notices when somebody changes or
//! deletes it.

use futures_util::StreamExt;
use isp_api::IngressSourceNode;
use isp_api::node::IngressSourceNodeStatus;
use isp_client::{events, named};
use kube::runtime::watcher::Event;
use kube::{Api, Client};
use serde_json::Value;
use tokio::sync::watch;

/// The status of the IngressSourceNode as the API server has it.
#[derive(Debug, Clone, Default, PartialEq)]
pub(crate) enum ObservedStatus {
    /// The agent has not read the object, or cannot.
    #[default]
    Unknown,
    /// There is no such object.
    Gone,
    /// The status; null if the object has none.
    Present(Value),
}

impl ObservedStatus {
    /// Says whether the status may acknowledge a view. Without having read it, it may.
    pub(super) fn may_acknowledge(&self) -> bool {
        match self {
            Self::Unknown => true,
            Self::Gone => false,
            Self::Present(status) => {
                let mut views = status["views"].as_array().into_iter().flatten();
                views.any(|view| view["received"] == true)
            }
        }
    }

    /// Says whether a part of the written status is missing. Additions of others do not count.
    pub(super) fn differs_from(&self, written: &IngressSourceNodeStatus) -> bool {
        match self {
            Self::Unknown => false,
            Self::Gone => true,
            Self::Present(status) => {
                // Compares the serialized form, because times have fewer digits there.
                let written = serde_json::to_value(written).unwrap_or_default();
                !covers(status, &written)
            }
        }
    }
}

/// Says whether `observed` contains everything of `written`. The API server treats the lists as
/// maps, so their entries may have another order.
fn covers(observed: &Value, written: &Value) -> bool {
    match (observed, written) {
        (Value::Object(observed), Value::Object(written)) => written
            .iter()
            .all(|(name, written)| observed.get(name).is_some_and(|observed| covers(observed, written))),
        (Value::Array(observed), Value::Array(written)) => {
            written.iter().all(|written| observed.iter().any(|observed| covers(observed, written)))
        }
        (observed, written) => observed == written,
    }
}

/// The longest watch that an API server allows. Every node has this watch, so it is renewed
/// rarely; pings on the connection detect a dead peer.
const WATCH_SECONDS: u32 = 290;

/// Watches the object. Does not return. While the CRD is missing, the watch retries with growing
/// pauses and logs once a minute.
pub(crate) async fn follow(client: Client, name: String, observed: watch::Sender<ObservedStatus>) {
    let nodes: Api<IngressSourceNode> = Api::all(client);
    let mut events = Box::pin(events(nodes, named(&name).timeout(WATCH_SECONDS)));
    let mut listing = ObservedStatus::Gone;
    while let Some(event) = events.next().await {
        let present = |object: IngressSourceNode| {
            ObservedStatus::Present(serde_json::to_value(object.status).unwrap_or_default())
        };
        let now = match event {
            Event::Init => {
                listing = ObservedStatus::Gone;
                continue;
            }
            Event::InitApply(object) => {
                listing = present(object);
                continue;
            }
            Event::InitDone => std::mem::take(&mut listing),
            Event::Apply(object) => present(object),
            Event::Delete(_) => ObservedStatus::Gone,
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
    use isp_api::node::AgentMode;
    use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
    use k8s_openapi::jiff::Timestamp;
    use serde_json::json;

    use super::*;

    #[test]
    fn an_object_differs_when_something_that_was_written_is_missing_or_other() {
        let mut written = IngressSourceNodeStatus {
            revision: String::new(),
            pool: "default".to_owned(),
            mode: AgentMode::Filter,
            views: serde_json::from_value(json!([
                {"object": "a", "uid": "1", "generation": 1, "view": "Hidden", "received": true},
                {"object": "b", "uid": "2", "generation": 1, "view": "Hidden", "received": true},
            ]))
            .unwrap(),
            active: true,
            served: None,
            last_sync: Some(Time(Timestamp::now())),
            conditions: Vec::new(),
        };
        let sent = serde_json::to_value(&written).unwrap();
        let stored: IngressSourceNodeStatus = serde_json::from_value(sent.clone()).unwrap();
        let stored = serde_json::to_value(stored).unwrap();
        assert!(
            !ObservedStatus::Present(stored.clone()).differs_from(&written),
            "a time with all its digits"
        );
        let changed = |change: &dyn Fn(&mut Value)| {
            let mut status = stored.clone();
            change(&mut status);
            ObservedStatus::Present(status)
        };
        let more = changed(&|status| status["conditions"] = json!([{"type": "Theirs", "status": "True"}]));
        assert!(!more.differs_from(&written), "what others add is theirs");
        let order = changed(&|status| status["views"].as_array_mut().unwrap().reverse());
        assert!(!order.differs_from(&written));
        assert!(changed(&|status| status["active"] = json!(false)).differs_from(&written));
        assert!(changed(&|status| status["views"][1]["received"] = json!(false)).differs_from(&written));
        assert!(
            changed(&|status| drop(status["views"].as_array_mut().unwrap().pop())).differs_from(&written)
        );
        assert!(ObservedStatus::Present(Value::Null).differs_from(&written));
        assert!(ObservedStatus::Gone.differs_from(&written));
        assert!(!ObservedStatus::Unknown.differs_from(&written), "it cannot be told");
        written.pool = "other".to_owned();
        assert!(ObservedStatus::Present(stored).differs_from(&written));
    }
}
