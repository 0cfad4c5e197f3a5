//! The tasks that make up a program: they run until its end, and none holds it up.
//!
//! A task that ends by itself takes the program with it. An agent whose watcher is gone while its health check
//! still answers would be worse than one that is started again.

use std::{collections::HashMap, time::Duration};

use tokio::{
    task::{Id, JoinError, JoinSet},
    time::timeout,
};
use tracing::{debug, error};

use super::Shutdown;

/// Why a program did not end as it should.
#[derive(Debug, thiserror::Error)]
pub enum TasksError {
    /// A task returned although nobody had asked for the end.
    #[error("task {task} ended before the program was told to end; the log says why")]
    EndedEarly {
        /// Its name.
        task: &'static str,
    },
    /// A task panicked.
    #[error("task {task} failed: {source}; this is a defect, please report it with the log")]
    Panicked {
        /// Its name.
        task: &'static str,
        /// What it panicked with.
        source: JoinError,
    },
    /// Tasks that went on after the end was asked for, and were cut off.
    #[error(
        "still running {grace:?} after the end was asked for, and cut off: {}; --log-level=debug shows what they do",
        .tasks.join(", ")
    )]
    StillRunning {
        /// Their names, in order.
        tasks: Vec<&'static str>,
        /// How long they had.
        grace: Duration,
    },
}

/// A program's tasks, by name. Dropping it cuts them off.
#[derive(Debug)]
pub struct Tasks {
    shutdown: Shutdown,
    running: JoinSet<()>,
    names: HashMap<Id, &'static str>,
}

impl Tasks {
    /// No tasks yet; those to come end when `shutdown` is requested.
    pub fn new(shutdown: Shutdown) -> Self {
        Self { shutdown, running: JoinSet::new(), names: HashMap::new() }
    }

    /// Starts a task, which is to run until the shutdown is requested, and then to return soon.
    pub fn spawn(&mut self, name: &'static str, task: impl Future<Output = ()> + Send + 'static) {
        let id = self.running.spawn(task).id();
        self.names.insert(id, name);
    }

    /// Runs the program: waits for its end, which a task that ends early brings on, then lets the tasks finish for
    /// up to `grace` and cuts off those that have not. The first thing that went wrong is returned, the others are
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

    /// Whether a task may have ended the way it did, at this time.
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

/// The earlier of two failures; a later one is only logged.
fn first(earlier: Result<(), TasksError>, later: Result<(), TasksError>) -> Result<(), TasksError> {
    if let (Err(_), Err(later)) = (&earlier, &later) {
        error!(error = %later, "shutdown: and another failure");
    }
    earlier.and(later)
}

#[cfg(test)]
mod tests;
