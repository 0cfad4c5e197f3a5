//! The reconcile loop: wait for a change, plan, execute the plan, plan again, until there is
//! nothing left to do.
//!
//! All state is in the index and all decisions are in the plan, so the loop can stop and resume at
//! any point. Only the leader plans and acts; the other replicas only keep their index current.

use std::collections::{BTreeSet, VecDeque};
use std::sync::Arc;
use std::time::Duration;

use futures_util::StreamExt;
use futures_util::future::BoxFuture;
use futures_util::stream::FuturesUnordered;
use isp_plan::{Action, Cluster, Settings, Waits, plan};
use k8s_openapi::jiff::Timestamp;
use kube::Client;
use tokio::time::{Instant, sleep_until, timeout};
use tracing::{debug, info, warn};

use crate::act::{Failure, carry_out};
use crate::events::Notices;
use crate::holds::{Holds, Until};
use crate::index::{Answer, News};
use crate::lease::Leadership;
use crate::metrics::{Metrics, Outcome};
use crate::observer::Observer;
use crate::pace::Pace;

/// Maximum number of concurrent writes.
const AT_ONCE: usize = 8;
/// Actions of a plan must start within this time, or within [`FRESH_TIMES`] times the planning time
/// if that is longer. Actions that have not started by then are planned again.
const FRESH: Duration = Duration::from_secs(1);
const FRESH_TIMES: u32 = 4;
/// Minimum delay before a plan that asks to be run again at once.
const SOONEST_WAKE: Duration = Duration::from_millis(100);

/// The result of one turn of the loop.
pub(crate) enum Turn {
    /// An update was folded in, or leadership changed.
    Went,
    /// A plan was made.
    Planned,
    /// An action succeeded.
    Did(Action),
    /// An action failed.
    Failed(Action, Failure),
}

/// The dependencies of the reconciler.
pub(crate) struct Parts {
    pub(crate) client: Client,
    pub(crate) settings: Settings,
    pub(crate) observer: Observer,
    pub(crate) leadership: Leadership,
    pub(crate) notices: Notices,
    pub(crate) metrics: Arc<Metrics>,
}

/// An action, when the handover of its node started, and how it ended. The watch may report the
/// node without its handover before the response arrives.
type Ended = (Action, Option<Timestamp>, Result<Answer, Failure>);

/// See the module documentation.
pub(crate) struct Reconciler {
    parts: Parts,
    pace: Pace,
    holds: Holds,
    /// Actions of the last plan that have not started yet, and the time limit for starting them.
    to_begin: VecDeque<Action>,
    fresh_until: Instant,
    under_way: FuturesUnordered<BoxFuture<'static, Ended>>,
    /// The waits of the last plan.
    waits: Waits,
    /// Whether the last plan had no actions and no wake time.
    at_rest: bool,
    /// Outcomes logged as warnings since the last success.
    complained: BTreeSet<Outcome>,
}

impl Reconciler {
    pub(crate) fn new(parts: Parts) -> Self {
        Self {
            parts,
            pace: Pace::default(),
            holds: Holds::default(),
            to_begin: VecDeque::new(),
            fresh_until: Instant::now(),
            under_way: FuturesUnordered::new(),
            waits: Waits::new(),
            at_rest: false,
            complained: BTreeSet::new(),
        }
    }

    /// The known cluster, once every kind has been listed.
    pub(crate) fn cluster(&self) -> Option<&Cluster> {
        let index = self.parts.observer.index();
        index.is_whole().then(|| index.cluster())
    }

    /// The kinds that have not been listed yet.
    pub(crate) fn missing(&self) -> Vec<String> {
        self.parts.observer.index().missing()
    }

    /// The failed actions and the reasons.
    pub(crate) fn failures(&self) -> impl Iterator<Item = (&str, &str)> {
        self.holds.reasons()
    }

    /// Whether the last plan had no actions and no wake time, and nothing has changed since.
    pub(crate) fn is_at_rest(&self) -> bool {
        self.at_rest
    }

    /// Runs one turn. Cancel-safe: requests in flight continue in the next turn.
    pub(crate) async fn turn(&mut self) -> Turn {
        self.begin();
        let now = Instant::now();
        let due = if self.under_way.is_empty() { self.due(now) } else { None };
        tokio::select! {
            news = self.parts.observer.next() => self.hear(news),
            Some((action, started, result)) = self.under_way.next() => return self.end(action, started, result),
            () = self.parts.leadership.changed() => self.leadership_changed(),
            () = sleep_until(due.unwrap_or(now)), if due.is_some() => {
                self.plan();
                return Turn::Planned;
            }
        }
        Turn::Went
    }

    /// Waits up to `grace` for requests in flight, and starts no new ones.
    pub(crate) async fn wind_down(&mut self, grace: Duration) {
        self.to_begin.clear();
        let all = async { while self.under_way.next().await.is_some() {} };
        if timeout(grace, all).await.is_err() {
            debug!("giving up on requests without a response");
        }
    }

    fn hear(&mut self, news: News) {
        if news == News::Facts || (news == News::Version && self.holds.await_news()) {
            self.pace.changed(Instant::now());
            self.at_rest = false;
        }
    }

    fn leadership_changed(&mut self) {
        self.to_begin.clear();
        self.under_way.clear();
        self.holds = Holds::default();
        self.waits = Waits::new();
        self.at_rest = false;
        self.pace.hurry();
    }

    fn due(&self, now: Instant) -> Option<Instant> {
        [self.pace.due(now), self.holds.next(self.pace.last())].into_iter().flatten().min()
    }

    fn plan(&mut self) {
        let now = Instant::now();
        let index = self.parts.observer.index();
        self.parts.metrics.cluster(index.cluster());
        if !self.parts.leadership.leads() || !index.is_whole() {
            self.pace.planned(now, None);
            return;
        }
        let time = Timestamp::now();
        let decided = plan(index.cluster(), &self.parts.settings, &self.waits, time);
        self.waits = decided.waits;
        self.parts.metrics.planned(now.elapsed());
        debug!(actions = decided.actions.len(), notices = decided.notices.len(), "planned");
        self.parts.notices.say(decided.notices);
        self.holds.retain(&decided.actions);
        let wake = decided.wake.map(|wake| {
            let wait = Duration::try_from(wake.duration_since(time)).unwrap_or_default();
            now + wait.max(SOONEST_WAKE)
        });
        self.at_rest = decided.actions.is_empty() && wake.is_none();
        let allowed = |action: &Action| self.holds.allow(action, || index.version(&action.target()), now);
        // Status updates come last, because the next plan may change them again.
        let (said, done): (Vec<_>, Vec<_>) = decided
            .actions
            .into_iter()
            .filter(allowed)
            .partition(|action| matches!(action, Action::Status { .. }));
        self.to_begin = done.into_iter().chain(said).collect();
        let took = now.elapsed();
        self.fresh_until = now + took + FRESH.max(took * FRESH_TIMES);
        self.pace.planned(now, wake);
    }

    fn begin(&mut self) {
        if self.to_begin.is_empty() {
            return;
        }
        if !self.parts.leadership.leads() {
            self.to_begin.clear();
            return;
        }
        if Instant::now() > self.fresh_until {
            self.to_begin.clear();
            self.pace.hurry();
        }
        while self.under_way.len() < AT_ONCE
            && let Some(action) = self.to_begin.pop_front()
        {
            let (client, write) = (self.parts.client.clone(), action.write());
            let started = self.handover_start(&action);
            self.under_way.push(Box::pin(async move { (action, started, carry_out(client, write).await) }));
        }
    }

    fn end(&mut self, action: Action, started: Option<Timestamp>, result: Result<Answer, Failure>) -> Turn {
        self.at_rest = false;
        match result {
            Ok(answer) => {
                info!(action = action.kind(), object = %action.target(), "done");
                self.parts.metrics.action(&action, Outcome::Done);
                let age =
                    started.and_then(|start| Duration::try_from(Timestamp::now().duration_since(start)).ok());
                self.parts.metrics.handover(&action, age);
                let is_there = !matches!(answer, Answer::Gone { .. });
                self.parts.observer.take_answer(answer);
                if is_there && self.parts.observer.index().version(&action.target()).is_none() {
                    self.holds.make(&action, Instant::now());
                } else {
                    self.holds.succeed(&action);
                }
                self.complained.clear();
                self.pace.hurry();
                Turn::Did(action)
            }
            Err(failure) => {
                self.parts.metrics.action(&action, failure.outcome);
                self.complain(&action, &failure);
                let until = if matches!(failure.outcome, Outcome::Stale | Outcome::Gone) {
                    Until::News(self.parts.observer.index().version(&action.target()).map(str::to_owned))
                } else {
                    Until::Time
                };
                self.holds.fail(&action, until, &failure.reason, Instant::now());
                Turn::Failed(action, failure)
            }
        }
    }

    /// When the handover of the action's node started.
    fn handover_start(&self, action: &Action) -> Option<Timestamp> {
        let Action::ShapeNode { node, .. } = action else { return None };
        let handover = self.parts.observer.index().cluster().nodes.get(node)?.handover.as_ref()?;
        Some(handover.started)
    }

    /// Logs a failure: a warning for the first of its kind, debug for repetitions and for
    /// conflicts.
    fn complain(&mut self, action: &Action, failure: &Failure) {
        let (kind, object) = (action.kind(), action.target().to_string());
        let Failure { outcome, reason } = failure;
        let first = match outcome {
            Outcome::Done | Outcome::Stale | Outcome::Gone => false,
            Outcome::Refused => !self.holds.has_failed(action),
            Outcome::Throttled | Outcome::ServerError | Outcome::Unreachable | Outcome::TimedOut => {
                self.complained.insert(*outcome)
            }
        };
        if first {
            warn!(action = kind, object, ?outcome, reason, "an action failed; retrying");
        } else {
            debug!(action = kind, object, ?outcome, reason, "an action failed");
        }
    }
}
