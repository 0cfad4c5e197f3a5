//! What API servers ask, and what they are answered. The decisions are pure; here is what they need to be fetched, and counted.

mod cache;
mod objects;
mod pods;
mod review;

#[cfg(test)]
mod tests;

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::{Duration, Instant};

use axum::Router;
use axum::body::Bytes;
use axum::extract::State;
use axum::response::{IntoResponse, Response};
use axum::routing::post;
use futures_util::stream::{self, StreamExt, TryStreamExt};
use http::{StatusCode, header};
use isp_api::IngressSourcePreserve;
use isp_api::sidecar::Labels;
use k8s_openapi::api::core::v1::{Namespace, Node, Service};
use kube::api::ListParams;
use kube::{Api, Client, ResourceExt};
use tokio::time::timeout;
use tokio::try_join;
use tracing::{debug, warn};

pub(crate) use self::cache::Cache;
use self::objects::Facts;
use self::pods::{PodReview, Question};
use self::review::{Answer, BadReview};
use crate::metrics::{Metrics, Path};

/// How long a question to the API server may take while it waits for an answer itself.
const PATIENCE: Duration = Duration::from_millis(1500);
/// How many namespaces are listed at the same time.
const AT_ONCE: usize = 8;

/// What the API server has in memory is new enough.
fn new_enough() -> ListParams {
    ListParams::default().match_any()
}

/// What the answers are made from.
pub(crate) struct Admission {
    pub(crate) cache: Arc<Cache>,
    pub(crate) client: Client,
    pub(crate) metrics: Arc<Metrics>,
}

/// The two questions.
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
    async fn about_pod(&self, body: &[u8]) -> Result<(Answer, &'static str), BadReview> {
        let question = match Question::new(review::read::<PodReview>(body)?)? {
            Ok(question) => question,
            Err(answer) => return Ok((answer, "NotAsked")),
        };
        let rules = self.cache.rules();
        if rules.is_empty() {
            return Ok((question.unknown(), "NotSelected"));
        }
        let Some(labels) = self.labels(&question.namespace).await else {
            return Ok((question.unknown(), "UnknownNamespace"));
        };
        Ok(question.answer(&rules, &labels))
    }

    /// The labels of a namespace. One that is newer than the watch is asked for.
    async fn labels(&self, name: &str) -> Option<Arc<Labels>> {
        if let Some(labels) = self.cache.labels(name) {
            return Some(labels);
        }
        let namespaces: Api<Namespace> = Api::all(self.client.clone());
        // To list is a right that the watch needs as well; to get would be one more.
        let this = ListParams::default().fields(&format!("metadata.name={name}"));
        match timeout(PATIENCE, namespaces.list_metadata(&this)).await {
            Ok(Ok(found)) => {
                let found = found.items.into_iter().next();
                found.map(|namespace| Arc::new(namespace.metadata.labels.unwrap_or_default()))
            }
            Ok(Err(error)) => {
                warn!(namespace = name, %error, "a pod is left alone: its namespace could not be read");
                None
            }
            Err(_) => {
                warn!(namespace = name, "a pod is left alone: the API server does not tell its namespace");
                None
            }
        }
    }

    async fn about_object(&self, body: &[u8]) -> Result<(Answer, &'static str), BadReview> {
        let request = review::read::<IngressSourcePreserve>(body)?;
        let reviewed = request.object.as_ref();
        let facts = match timeout(PATIENCE, self.facts(reviewed)).await {
            Ok(Ok(facts)) => facts,
            failed => {
                // What the operator will find, it will say on the object.
                let error = failed.map_or("it takes too long".to_owned(), |failed| {
                    failed.err().map(|error| error.to_string()).unwrap_or_default()
                });
                warn!(error, "an object is not compared with the cluster, which could not be read");
                let warning = "it could not be compared with the cluster, which could not be read in time; see its conditions".to_owned();
                return Ok((Answer::allow(request.uid).with_warnings([warning]), "Unchecked"));
            }
        };
        objects::answer(request, &facts)
    }

    /// What there is in the cluster, as far as the objects speak of it.
    async fn facts(&self, reviewed: Option<&IngressSourcePreserve>) -> Result<Facts, kube::Error> {
        let Some(reviewed) = reviewed else { return Ok(Facts::default()) };
        let objects = self.cache.objects();
        let targets = objects.iter().chain([reviewed]).flat_map(|object| &object.spec.services);
        let named: BTreeSet<String> = targets.map(|target| target.namespace.clone()).collect();
        let services = stream::iter(named).map(|namespace| self.services_in(namespace)).buffered(AT_ONCE);
        let api: Api<Node> = Api::all(self.client.clone());
        let in_memory = new_enough();
        let (services, nodes) = try_join!(services.try_concat(), api.list_metadata(&in_memory))?;
        let nodes = nodes.items.into_iter();
        let nodes = nodes.map(|node| (node.name_any(), node.metadata.labels.unwrap_or_default())).collect();
        Ok(Facts { services, nodes, namespaces: self.cache.namespaces(), objects })
    }

    async fn services_in(&self, namespace: String) -> Result<Vec<(String, String, Labels)>, kube::Error> {
        let api: Api<Service> = Api::namespaced(self.client.clone(), &namespace);
        let found = api.list_metadata(&new_enough()).await?.items.into_iter();
        let services = found.map(|service| {
            (namespace.clone(), service.name_any(), service.metadata.labels.unwrap_or_default())
        });
        Ok(services.collect())
    }

    /// Counts an answer and puts it into words.
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
                debug!(%error, "a review is refused");
                ("Malformed", (StatusCode::BAD_REQUEST, error.to_string()).into_response())
            }
        };
        self.metrics.reviewed(path, outcome, began.elapsed());
        response
    }
}
