//! Admission reviews. The decisions are pure; this module fetches their inputs and counts the
//! results.

mod cache;
mod inventory;
mod objects;
mod pods;
mod review;
mod rounds;

#[cfg(test)]
mod tests;

use std::sync::Arc;
use std::time::{Duration, Instant};

use axum::Router;
use axum::body::Bytes;
use axum::extract::State;
use axum::response::{IntoResponse, Response};
use axum::routing::post;
use http::{StatusCode, header};
use isp_api::IngressSourcePreserve;
use isp_api::sidecar::Labels;
use kube::Client;
use tokio::sync::Semaphore;
use tokio::time::timeout;
use tracing::{debug, warn};

pub(crate) use self::cache::Cache;
use self::inventory::Inventory;
use self::objects::Facts;
use self::pods::{Asked, PodReview};
use self::review::{Answer, BadReview};
use self::rounds::{Limits, Reader, Rounds, Unread, rounds};
use crate::metrics::{Metrics, Path};

/// How long a review waits for a namespace that the watch has not reported yet.
const PATIENCE: Duration = Duration::from_secs(1);
/// How many reviews may wait like that.
const WAITING: usize = 64;

/// The inputs of the decisions.
pub(crate) struct Admission {
    cache: Arc<Cache>,
    inventory: Rounds<Inventory>,
    /// Limits the reviews of pods that wait for their namespace, and how long they wait.
    waiting: Semaphore,
    patience: Duration,
    /// The image of the init container that redirects connections.
    redirect_image: String,
    metrics: Arc<Metrics>,
}

/// Reads from the API server for reviews, at a limited rate.
pub(crate) struct InventoryReader(Reader<Inventory>);

impl InventoryReader {
    /// Never returns.
    pub(crate) async fn run(self, client: Client) {
        self.0.run(|namespaces| inventory::read(client.clone(), namespaces)).await;
    }
}

/// The two endpoints.
pub(crate) fn router(admission: Arc<Admission>) -> Router {
    Router::new()
        .route("/mutate/pods", post(mutate_pods))
        .route("/validate/ingresssourcepreserves", post(validate_objects))
        .with_state(admission)
}

async fn mutate_pods(State(admission): State<Arc<Admission>>, body: Bytes) -> Response {
    let began = Instant::now();
    let answer = admission.about_pod(&body).await;
    admission.finish(Path::Pods, began, answer)
}

async fn validate_objects(State(admission): State<Arc<Admission>>, body: Bytes) -> Response {
    let began = Instant::now();
    let answer = admission.about_object(&body).await;
    admission.finish(Path::Objects, began, answer)
}

impl Admission {
    /// Creates the handler and its reader, which has to be run for the handler to get data from the
    /// API server.
    pub(crate) fn new(
        cache: Arc<Cache>,
        redirect_image: String,
        metrics: Arc<Metrics>,
    ) -> (Self, InventoryReader) {
        Self::with_limits(cache, redirect_image, metrics, inventory::LIMITS, PATIENCE)
    }

    fn with_limits(
        cache: Arc<Cache>,
        redirect_image: String,
        metrics: Arc<Metrics>,
        limits: Limits,
        patience: Duration,
    ) -> (Self, InventoryReader) {
        let (inventory, reader) = rounds(limits);
        let waiting = Semaphore::new(WAITING);
        let this = Self { cache, inventory, waiting, patience, redirect_image, metrics };
        (this, InventoryReader(reader))
    }

    async fn about_pod(&self, body: &[u8]) -> Result<(Answer, &'static str), BadReview> {
        let pod = match Asked::of(review::read::<PodReview>(body)?)? {
            Asked::Decide(pod) => pod,
            Asked::Allow(answer) => return Ok((answer, "NotAsked")),
        };
        let rules = self.cache.rules();
        if rules.is_empty() {
            return Ok((pod.unknown(), "NotSelected"));
        }
        let Some(labels) = self.labels(&pod.namespace).await else {
            return Ok((pod.unknown(), "UnknownNamespace"));
        };
        pod.answer(&rules, &labels, &self.redirect_image)
    }

    /// The labels of a namespace. A pod may arrive moments before the watch reports its namespace,
    /// so a limited number of reviews wait for it. The API server is not asked, because a caller
    /// could name any number of namespaces.
    async fn labels(&self, name: &str) -> Option<Arc<Labels>> {
        if let Some(labels) = self.cache.labels(name) {
            return Some(labels);
        }
        let labels = match self.waiting.try_acquire() {
            Ok(_place) => timeout(self.patience, self.cache.labels_to_come(name)).await.ok().flatten(),
            Err(_) => None,
        };
        if labels.is_none() {
            debug!(namespace = name, "leaving a pod unchanged: its namespace is unknown");
        }
        labels
    }

    async fn about_object(&self, body: &[u8]) -> Result<(Answer, &'static str), BadReview> {
        let request = review::read::<IngressSourcePreserve>(body)?;
        let facts = match objects::claimant(&request) {
            None => Facts::default(),
            Some(object) => match self.facts(object).await {
                Ok(facts) => facts,
                Err(error) => {
                    // The operator reports problems on the object later.
                    warn!(%error, "cannot compare an object with the cluster");
                    let warning = format!(
                        "the object could not be compared with the cluster: {error}; see its conditions"
                    );
                    return Ok((Answer::allow(request.uid).with_warnings([warning]), "Unchecked"));
                }
            },
        };
        objects::answer(request, &facts)
    }

    /// The part of the cluster that the object refers to.
    async fn facts(&self, object: &IngressSourcePreserve) -> Result<Facts, Unread> {
        let inventory = self.inventory.read(inventory::namespaces(object)).await?;
        Ok(Facts { inventory, namespaces: self.cache.namespaces(), objects: self.cache.objects() })
    }

    /// Counts a response and serializes it.
    fn finish(
        &self,
        path: Path,
        began: Instant,
        answer: Result<(Answer, &'static str), BadReview>,
    ) -> Response {
        let (outcome, response) = match answer {
            Ok((answer, outcome)) => match serde_json::to_vec(&answer) {
                Ok(body) => (outcome, ([(header::CONTENT_TYPE, "application/json")], body).into_response()),
                Err(error) => ("Malformed", (StatusCode::BAD_REQUEST, error.to_string()).into_response()),
            },
            Err(error) => {
                debug!(%error, "rejecting a review");
                ("Malformed", (StatusCode::BAD_REQUEST, error.to_string()).into_response())
            }
        };
        self.metrics.reviewed(path, outcome, began.elapsed());
        response
    }
}
