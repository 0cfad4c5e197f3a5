//! The loop of mode Beside: waits for events, brings the kernel's tables up to date, and publishes
//! what it has committed. A change is programmed when it comes; changes that come while the kernel
//! is busy are programmed together.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use futures_util::FutureExt;
use isp_api::view::NodeView;
use isp_dataplane::model::{Node, ServiceName};
use isp_kernel::{Changes, KernelThread};
use isp_runtime::health::Pulse;
use tokio::sync::watch;
use tokio::time::{Instant, sleep_until};
use tracing::{debug, info, warn};

use super::committed::{Committed, CommittedService};
use super::known::Wanted;
use super::metrics::BesideMetrics;
use super::own_node::{TrafficArgs, own_node};
use super::preserved::Preserved;
use super::programmer::{Outcome, ProgramError, Programmer};
use super::serving::{Next, Scope, Served, Serving};
use super::watches::Watches;
use crate::node::view::{EpochView, ViewStore};

/// The most events that are folded in before the kernel gets what they changed.
const MOST_EVENTS: usize = 10_000;
/// How long a packet may be on its way between two lookups.
const SWEEP: Duration = Duration::from_millis(100);
/// The pauses after failures.
const FIRST_PAUSE: Duration = Duration::from_millis(100);
const LONGEST_PAUSE: Duration = Duration::from_secs(10);
/// The most ports that one commit logs.
const MOST_LOGGED: usize = 10;
/// The loop beats at least this often.
const IDLE: Duration = Duration::from_secs(10);

/// The parts of the loop.
pub(crate) struct ServiceLoop {
    pub(crate) view: Arc<ViewStore>,
    pub(crate) scope: Scope,
    pub(crate) node_name: String,
    pub(crate) traffic: TrafficArgs,
    pub(crate) watches: Watches,
    pub(crate) kernel: KernelThread,
    pub(crate) kernel_changes: Changes,
    pub(crate) programmer: Arc<Mutex<Programmer>>,
    pub(crate) committed: watch::Sender<Committed>,
    pub(crate) metrics: Arc<BesideMetrics>,
    pub(crate) pulse: Pulse,
    /// Set while this node has no Node object.
    pub(crate) node_is_missing: Arc<AtomicBool>,
}

/// What the loop remembers.
#[derive(Default)]
struct Memory {
    node: Option<Node>,
    /// The view that the decisions follow.
    follows: Option<EpochView>,
    serving: Serving,
    /// Whether the tables of the agent before this one were read.
    knows_predecessor: bool,
    is_synchronized: bool,
    failures: u32,
    retry_at: Option<Instant>,
    sweep_at: Option<Instant>,
}

impl ServiceLoop {
    /// Does not return unless the kernel's connection is lost.
    pub(crate) async fn run(mut self) {
        let mut views = self.view.subscribe();
        let mut memory = Memory::default();
        loop {
            self.pulse.beat();
            let idle = Instant::now() + IDLE;
            let timer =
                [memory.retry_at, memory.sweep_at].into_iter().flatten().min().unwrap_or(idle).min(idle);
            tokio::select! {
                () = self.watches.next() => {}
                _ = views.changed() => {}
                change = self.kernel_changes.next() => match change {
                    Some(Ok(change)) => {
                        warn!(%change, "the tables are checked and repaired");
                        self.metrics.repaired();
                        memory.is_synchronized = false;
                    }
                    // The program ends with the thread, and its pod starts again.
                    Some(Err(error)) => return warn!(%error, "the connection to the kernel is lost"),
                    None => return,
                },
                () = sleep_until(timer) => {}
            }
            let mut folded = 0;
            while folded < MOST_EVENTS && self.watches.next().now_or_never().is_some() {
                folded += 1;
            }
            self.sweep(&mut memory).await;
            if memory.retry_at.is_some_and(|at| Instant::now() < at) {
                continue;
            }
            self.step(&mut memory).await;
        }
    }

    /// Brings the kernel up to date with everything that is known.
    async fn step(&mut self, memory: &mut Memory) {
        let Some(current) = self.view.current() else { return };
        self.follow(memory, &current);
        if !self.watches.knows_node() || !self.watches.is_complete() {
            return;
        }
        let node = self.own_node(memory);
        if !memory.knows_predecessor {
            let target = node.clone();
            match self.on_kernel(move |programmer, kernel| programmer.cluster_ips(kernel, &target)).await {
                Ok(cluster_ips) => memory.serving.succeed(cluster_ips),
                Err(error) => return self.failed(memory, &error),
            }
            memory.knows_predecessor = true;
        }
        if memory.node.as_ref() != Some(&node) {
            memory.is_synchronized = false;
        }
        let next = memory.serving.next(&mut self.watches.known, memory.is_synchronized);
        self.metrics.looked_at(memory.serving.looked_at());
        let news = News::of(&next, &node);
        let started = Instant::now();
        let result = match next {
            Next::Nothing => Ok(None),
            Next::Everything(services) => {
                let target = node.clone();
                self.on_kernel(move |programmer, kernel| programmer.synchronize(kernel, &target, &services))
                    .await
                    .map(Some)
            }
            Next::Some(changes) => {
                self.on_kernel(move |programmer, kernel| programmer.apply(kernel, &changes)).await.map(Some)
            }
        };
        match result {
            Ok(outcome) => {
                (memory.node, memory.is_synchronized) = (Some(node), true);
                (memory.failures, memory.retry_at) = (0, None);
                if let Some(outcome) = &outcome {
                    self.note(outcome, started.elapsed());
                    if outcome.leaves_something {
                        memory.sweep_at.get_or_insert(Instant::now() + SWEEP);
                    }
                }
                self.publish(&current.view, &news, outcome.as_ref());
            }
            Err(error) => self.failed(memory, &error),
        }
    }

    /// Lets the watches and the decisions follow the view.
    fn follow(&mut self, memory: &mut Memory, current: &EpochView) {
        if memory.follows.as_ref().is_some_and(|before| before.is(current)) {
            return;
        }
        self.watches.follow(match self.scope {
            Scope::All => Wanted::All,
            Scope::Preserved => Wanted::Labelled(current.view.served_labels()),
        });
        memory.serving.follow(self.scope, Preserved::of(current));
        memory.follows = Some(current.clone());
    }

    /// The facts about this node. While its Node object is missing, the last ones count: somebody
    /// may have deleted the object by mistake, and packets still arrive.
    fn own_node(&self, memory: &Memory) -> Node {
        let there = self.watches.node();
        let is_missing = there.is_none();
        if self.node_is_missing.swap(is_missing, Ordering::Relaxed) != is_missing {
            info!(node = self.node_name, is_missing, "the Node object came or went");
        }
        match (&memory.node, there) {
            (Some(last), None) => last.clone(),
            (_, there) => own_node(&self.node_name, there, &self.traffic),
        }
    }

    async fn on_kernel<T: Send + 'static>(
        &mut self,
        job: impl FnOnce(&mut Programmer, &mut isp_kernel::Kernel) -> Result<T, ProgramError> + Send + 'static,
    ) -> Result<T, String> {
        let programmer = self.programmer.clone();
        let job = move |kernel: &mut isp_kernel::Kernel| {
            job(&mut programmer.lock().unwrap_or_else(PoisonError::into_inner), kernel)
        };
        match self.kernel.run(job).await {
            Ok(result) => result.map_err(|error| error.to_string()),
            Err(stopped) => Err(stopped.to_string()),
        }
    }

    async fn sweep(&mut self, memory: &mut Memory) {
        if memory.sweep_at.is_none_or(|at| Instant::now() < at) {
            return;
        }
        memory.sweep_at = None;
        if let Err(error) = self.on_kernel(Programmer::sweep).await {
            debug!(error, "elements that no packet finds are still there");
            memory.is_synchronized = false;
        }
    }

    fn note(&self, outcome: &Outcome, took: Duration) {
        self.metrics.committed(outcome, took);
        if outcome.loaded > 0 {
            info!(tables = outcome.loaded, "loaded the tables");
        }
        for port in outcome.refused.iter().take(MOST_LOGGED) {
            warn!(%port, "not served: all identities are in use");
        }
        if let Some(error) = &outcome.conntrack {
            warn!(%error, "UDP clients may keep sending to endpoints that are gone");
        }
        debug!(operations = outcome.operations, flows = outcome.flows, ?took, "committed");
    }

    fn failed(&self, memory: &mut Memory, error: &str) {
        self.metrics.failed();
        memory.is_synchronized = false;
        let pause = FIRST_PAUSE.saturating_mul(2_u32.saturating_pow(memory.failures)).min(LONGEST_PAUSE);
        memory.failures = memory.failures.saturating_add(1);
        memory.retry_at = Some(Instant::now() + pause);
        warn!(error, ?pause, "cannot program the kernel; everything is read and written again");
        self.committed.send_modify(|committed| committed.error = Some(error.to_owned()));
    }

    /// Tells the report and the health checks what the kernel has.
    fn publish(&self, view: &Arc<NodeView>, news: &News, outcome: Option<&Outcome>) {
        self.committed.send_if_modified(|committed| {
            let mut changed = committed.view.as_ref() != Some(view) || committed.error.is_some();
            (committed.view, committed.error) = (Some(view.clone()), None);
            if let Some(outcome) = outcome {
                let contests: Vec<String> = outcome.contests.iter().map(ToString::to_string).collect();
                for contest in contests.iter().filter(|contest| !committed.contests.contains(contest)) {
                    warn!("{contest}");
                }
                changed |= (committed.number, &committed.contests) != (outcome.services, &contests);
                (committed.number, committed.contests) = (outcome.services, contests);
            }
            if news.is_everything {
                committed.clear();
                changed = true;
            }
            for (name, service) in &news.services {
                changed |= committed.set(name, service.as_ref());
            }
            changed
        });
    }
}

/// Committed Services that are not published yet.
#[derive(Default)]
struct News {
    /// Whether there are no others.
    is_everything: bool,
    services: Vec<(Arc<ServiceName>, Option<CommittedService>)>,
}

impl News {
    fn of(next: &Next, node: &Node) -> Self {
        let committed = |served: &Served| CommittedService::of(served, node);
        match next {
            Next::Nothing => Self::default(),
            Next::Everything(all) => Self {
                is_everything: true,
                services: all.iter().map(|(name, served)| (name.clone(), Some(committed(served)))).collect(),
            },
            Next::Some(changes) => Self {
                is_everything: false,
                services: changes
                    .iter()
                    .map(|(name, served)| (name.clone(), served.as_ref().map(committed)))
                    .collect(),
            },
        }
    }
}
