//! One request of kube-proxy's: refused, answered here, or forwarded and narrowed on its way back.

mod gunzip;
mod headers;
mod request_body;
mod response_body;
mod status;

use std::sync::Arc;
use std::time::Duration;

use http::uri::PathAndQuery;
use http::{Request, Response, StatusCode, header};
use http_body_util::Full;
use hyper::body::{Body, Incoming};
use isp_api::view::Narrowing;
use tokio::time::timeout;
use tracing::{debug, warn};

use self::headers::Treatment;
use self::request_body::{Bodies, BodyProblem};
pub(crate) use self::response_body::ReplyBody;
use crate::filter::metrics::{Metrics, Outcome};
use crate::filter::readers::{Program, Readers};
use crate::filter::request::{Asked, Forward, Read, Refusal, Services, decide};
use crate::filter::session::Admission;
use crate::filter::wire;
use crate::node::upstream::Upstream;
use crate::node::view::{Connection, Current, State};

/// How long the API server may take to begin its answer. A list of everything takes a while.
const ANSWER_TIMEOUT: Duration = Duration::from_mins(1);

/// Serves kube-proxy.
pub(crate) struct Proxy {
    node: String,
    state: Arc<State>,
    upstream: Upstream,
    bodies: Bodies,
    metrics: Arc<Metrics>,
}

type Reply = Response<ReplyBody>;

impl Proxy {
    pub(crate) fn new(node: String, state: Arc<State>, upstream: Upstream, metrics: Arc<Metrics>) -> Self {
        Self { node, state, upstream, bodies: Bodies::default(), metrics }
    }

    pub(crate) async fn serve(&self, request: Request<Incoming>, connection: &Arc<Connection>) -> Reply {
        let (outcome, reply) = match self.answer(request, connection).await {
            Ok(reply) => (Outcome::Forwarded, reply),
            Err(problem) => {
                debug!(%problem, "request not forwarded");
                (problem.outcome(), problem.reply())
            }
        };
        self.metrics.request(outcome);
        reply
    }

    async fn answer(
        &self,
        request: Request<Incoming>,
        connection: &Arc<Connection>,
    ) -> Result<Reply, Problem> {
        if request.headers().contains_key(header::UPGRADE) {
            return Err(Problem::Upgrade);
        }
        let current = self.state.current();
        let narrowing = current.as_ref().map(|current| current.narrowing.clone()).unwrap_or_default();
        let forward = match self.decide(&request, &narrowing) {
            Ok(forward) => forward,
            Err(refusal) => {
                request_body::drain(request.into_body()).await;
                return Err(refusal.into());
            }
        };
        match forward {
            Forward::Unchanged { watch } => {
                let path = request.uri().path_and_query().cloned().ok_or(Problem::Path)?;
                let answer = self.forward(request, path, Treatment::Pass).await?;
                Ok(answer.map(|body| ReplyBody::forwarded(body, watch, self.metrics.clone())))
            }
            Forward::Services(services) => {
                // Until the view is known no Service is shown.
                self.services(request, services, current.ok_or(Problem::NoView)?, connection).await
            }
        }
    }

    fn decide(&self, request: &Request<Incoming>, narrowing: &Narrowing) -> Result<Forward, Refusal> {
        let accept = request.headers().get_all(header::ACCEPT).iter();
        let accept: Vec<&str> = accept.filter_map(|value| value.to_str().ok()).collect();
        let asked = Asked {
            method: request.method(),
            path: request.uri().path(),
            query: request.uri().query().unwrap_or_default(),
            accept: &accept.join(","),
            has_body: !request.body().is_end_stream(),
        };
        decide(asked, &self.node, narrowing)
    }

    async fn services(
        &self,
        request: Request<Incoming>,
        services: Services,
        current: Current,
        connection: &Arc<Connection>,
    ) -> Result<Reply, Problem> {
        let user_agent = request.headers().get(header::USER_AGENT).and_then(|value| value.to_str().ok());
        let caller = connection.client(Program::named(user_agent));
        let admit = |readers: &mut Readers, client| readers.admit(client, services.read, current.epoch);
        if caller.note(admit) == Admission::Expired {
            self.metrics.relist_forced();
            return Err(Problem::Expired);
        }
        debug!(read = ?services.read, rewrite = ?services.rewrite, query = services.query, "Services are read");
        let path = format!("{}?{}", request.uri().path(), services.query);
        let path = PathAndQuery::try_from(path).map_err(|_| Problem::Path)?;
        let body = match services.read {
            Read::List | Read::NextPage => wire::Body::List,
            Read::WatchFromStart | Read::WatchFromVersion => wire::Body::Watch,
        };
        let treatment = match (services.rewrite, body) {
            (Some(format), wire::Body::List) => Treatment::RewriteList(format),
            (Some(format), wire::Body::Watch) => Treatment::RewriteWatch(format),
            (None, wire::Body::Watch) => Treatment::Follow,
            (None, wire::Body::List) => Treatment::Pass,
        };
        let mut answer = self.forward(request, path, treatment).await?;
        if answer.status() != StatusCode::OK {
            // A Status; there is no Service in it.
            return Ok(answer.map(|body| ReplyBody::forwarded(body, false, self.metrics.clone())));
        }
        let rewrite = services.rewrite.is_some();
        // A list that is not changed need not be read.
        let written = headers::written(answer.headers()).filter(|_| treatment != Treatment::Pass);
        if rewrite && written.map(|written| written.format) != services.rewrite {
            return Err(Problem::Unreadable);
        }
        if rewrite {
            headers::changed(answer.headers_mut());
        }
        let reading = response_body::Reading { body, rewrite, current, written };
        Ok(answer.map(|body| ReplyBody::services(body, reading, caller, &self.state, self.metrics.clone())))
    }

    /// Asks the API server with the caller's own credentials and nothing else of the caller's.
    async fn forward(
        &self,
        request: Request<Incoming>,
        path: PathAndQuery,
        treatment: Treatment,
    ) -> Result<Response<Incoming>, Problem> {
        let (head, body) = request.into_parts();
        // Its room is held until the API server has it.
        let (body, _room) = self.bodies.read(body).await?;
        let mut onward = Request::new(Full::new(body));
        *onward.method_mut() = head.method;
        *onward.headers_mut() = headers::onward(&head.headers, treatment);
        let asked = timeout(ANSWER_TIMEOUT, self.upstream.ask(onward, path)).await;
        let mut answer = match asked {
            Ok(Ok(answer)) => answer,
            Ok(Err(error)) => {
                warn!(error = %chain(&error), "the API server cannot be asked");
                return Err(Problem::Upstream);
            }
            Err(_) => return Err(Problem::Slow),
        };
        headers::back(answer.headers_mut());
        Ok(answer)
    }
}

/// Why a request gets an answer of the agent's own.
#[derive(Debug, thiserror::Error)]
enum Problem {
    #[error(transparent)]
    Refused(#[from] Refusal),
    #[error("this agent forwards no upgrades: kube-proxy asks for none")]
    Upgrade,
    #[error(transparent)]
    Body(#[from] BodyProblem),
    #[error("the request has no path that could be forwarded")]
    Path,
    #[error("the view of this node changed since this was read: list anew")]
    Expired,
    #[error("this agent does not know yet what this node may see")]
    NoView,
    #[error("the API server cannot be reached by this agent")]
    Upstream,
    #[error("the API server did not answer within {} s", ANSWER_TIMEOUT.as_secs())]
    Slow,
    #[error("the API server answered in an encoding in which addresses cannot be hidden")]
    Unreadable,
}

impl Problem {
    fn status(&self) -> StatusCode {
        match self {
            Self::Refused(Refusal::Encoding { .. }) => StatusCode::NOT_ACCEPTABLE,
            Self::Refused(_) => StatusCode::FORBIDDEN,
            Self::Upgrade | Self::Path => StatusCode::BAD_REQUEST,
            Self::Body(BodyProblem::TooLarge) => StatusCode::PAYLOAD_TOO_LARGE,
            Self::Body(BodyProblem::Slow) => StatusCode::REQUEST_TIMEOUT,
            Self::Body(BodyProblem::Full) => StatusCode::TOO_MANY_REQUESTS,
            Self::Expired => StatusCode::GONE,
            Self::NoView => StatusCode::SERVICE_UNAVAILABLE,
            Self::Upstream | Self::Unreadable => StatusCode::BAD_GATEWAY,
            Self::Slow => StatusCode::GATEWAY_TIMEOUT,
        }
    }

    fn outcome(&self) -> Outcome {
        match self {
            Self::Expired => Outcome::Expired,
            Self::NoView | Self::Upstream | Self::Unreadable | Self::Slow => Outcome::Failed,
            _ => Outcome::Refused,
        }
    }

    fn reply(&self) -> Reply {
        status::reply(self.status(), &self.to_string())
    }
}

fn chain(error: &dyn std::error::Error) -> String {
    let mut text = error.to_string();
    let mut source = error.source();
    while let Some(cause) = source {
        text.push_str(": ");
        text.push_str(&cause.to_string());
        source = cause.source();
    }
    text
}
