//! kube-proxy's configuration, read once because kube-proxy itself reads it only at startup. A
//! `ConfigMap` that cannot be read counts as empty, so that nothing blocks on it, and is retried.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use futures_util::{Stream, stream};
use isp_client::plain;
use isp_plan::{Key, observe};
use k8s_openapi::api::core::v1::ConfigMap;
use kube::{Api, Client};
use tokio::time::{sleep, timeout};
use tracing::{debug, warn};

use crate::backoff::Backoff;
use crate::index::Configurations;

const DEADLINE: Duration = Duration::from_secs(10);

/// Yields the configuration after each attempt, until every ConfigMap has been read.
pub(super) fn read(
    client: Client,
    namespace: String,
    maps: BTreeSet<String>,
) -> impl Stream<Item = Configurations> + Send {
    let api: Api<ConfigMap> = Api::namespaced(client, &namespace);
    let begin = Reading { api, namespace, left: maps, found: BTreeMap::new(), backoff: Backoff::default() };
    stream::unfold(Some(begin), |reading| async {
        let mut reading = reading?;
        if reading.backoff.has_failed() {
            sleep(reading.backoff.delay()).await;
        }
        reading.attempt().await;
        let found = reading.found.clone();
        Some((found, (!reading.left.is_empty()).then_some(reading)))
    })
}

struct Reading {
    api: Api<ConfigMap>,
    namespace: String,
    left: BTreeSet<String>,
    found: Configurations,
    backoff: Backoff,
}

impl Reading {
    async fn attempt(&mut self) {
        for name in std::mem::take(&mut self.left) {
            let key = Key::new(&*self.namespace, &*name);
            let failure = match timeout(DEADLINE, self.api.get(&name)).await {
                Ok(Ok(map)) => {
                    self.found.insert(key, observe::configuration(&map));
                    continue;
                }
                Ok(Err(error)) => plain(&error),
                Err(_) => format!("no answer within {} s", DEADLINE.as_secs()),
            };
            if self.backoff.has_failed() {
                debug!(config_map = %key, error = failure, "still cannot read this ConfigMap of kube-proxy");
            } else {
                warn!(config_map = %key, error = failure, "cannot read a ConfigMap of kube-proxy; retrying");
            }
            self.found.insert(key, BTreeMap::new());
            self.left.insert(name);
        }
        if self.left.is_empty() {
            return;
        }
        self.backoff.fail();
    }
}
