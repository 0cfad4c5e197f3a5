//! The tasks of a program: they run until the shutdown, and none can delay it beyond the grace
//! period.
//!
//! A task that ends early shuts the program down. An agent without its watcher that still passes
//! its health check would be worse than a restart.

use std::{collections::HashMap, time::Duration};

use tokio::{
    task::{Id, JoinError, JoinSet},
    time::timeout,
};
use tracing::{debug, error};

use super::Shutdown;

/// Why a program did not end properly.
#[derive(Debug, thiserror::Error)]
pub enum TasksError {
    /// A task returned before the shutdown was requested.
    #[error("task {task} ended before the program was asked to shut down; see the log for the reason")]
    EndedEarly {
        /// The name of the task.
        task: &'static str,
    },
    /// A task panicked.
    #[error("task {task} failed: {source}; this is a bug, please report it with the log")]
    Panicked {
        /// The name of the task.
        task: &'static str,
        /// The panic.
        source: JoinError,
    },
    /// Tasks were still running after the grace period and were aborted.
    #[error(
        "tasks still running {grace:?} after the shutdown began were aborted: {}; --log-level=debug shows their progress",
        .tasks.join(", ")
    )]
    StillRunning {
        /// The names of the tasks, sorted.
        tasks: Vec<&'static str>,
        /// The grace period.
        grace: Duration,
    },
}

/// The tasks of a program, by name. Dropping it aborts them.
#[derive(Debug)]
pub struct Tasks {
    shutdown: Shutdown,
    running: JoinSet<()>,
    names: HashMap<Id, &'static str>,
}

impl Tasks {
    /// An empty set; its tasks end when `shutdown` is requested.
    pub fn new(shutdown: Shutdown) -> Self {
        Self { shutdown, running: JoinSet::new(), names: HashMap::new() }
    }

    /// Starts a task. It must run until the shutdown is requested and then return soon.
    pub fn spawn(&mut self, name: &'static str, task: impl Future<Output = ()> + Send + 'static) {
        let id = self.running.spawn(task).id();
        self.names.insert(id, name);
    }

    /// Waits for the shutdown, which a task that ends early requests as well. Then gives the tasks
    /// up to `grace` to finish, and aborts the rest. Returns the first error; later ones are
    /// logged.
    pub async fn finish(mut self, grace: Duration) -> Result<(), TasksError> {
        let shutdown = self.shutdown.clone();
        let early = tokio::select! {
            () = shutdown.requested() => Ok(()),
            Some(ended) = self.running.join_next_with_id() => self.judge(ended),
        };
        shutdown.request();
        let drained = self.drain(grace).await;
        first(early, drained)
    }

    async fn drain(&mut self, grace: Duration) -> Result<(), TasksError> {
        let mut outcome = Ok(());
        let all = async {
            while let Some(ended) = self.running.join_next_with_id().await {
                outcome = first(std::mem::replace(&mut outcome, Ok(())), self.judge(ended));
            }
        };
        if timeout(grace, all).await.is_ok() {
            return outcome;
        }
        let mut tasks: Vec<_> = self.names.values().copied().collect();
        tasks.sort_unstable();
        first(outcome, Err(TasksError::StillRunning { tasks, grace }))
    }

    /// Whether the task was allowed to end this way at this time.
    fn judge(&mut self, ended: Result<(Id, ()), JoinError>) -> Result<(), TasksError> {
        let id = ended.as_ref().map_or_else(JoinError::id, |(id, ())| *id);
        let task = self.names.remove(&id).unwrap_or("without a name");
        debug!(task, "shutdown: task ended");
        match ended {
            Err(source) if source.is_panic() => Err(TasksError::Panicked { task, source }),
            _ if self.shutdown.is_requested() => Ok(()),
            _ => Err(TasksError::EndedEarly { task }),
        }
    }
}

/// The earlier of two errors; the later one is only logged.
fn first(earlier: Result<(), TasksError>, later: Result<(), TasksError>) -> Result<(), TasksError> {
    if let (Err(_), Err(later)) = (&earlier, &later) {
        error!(error = %later, "shutdown: another failure");
    }
    earlier.and(later)
}

#[cfg(test)]
mod tests;
