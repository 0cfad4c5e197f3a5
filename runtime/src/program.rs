//! The frame of a program: signal handlers, admin server, tasks and shutdown.

use std::{net::SocketAddr, sync::Arc, time::Duration};

use prometheus_client::registry::Registry;

use crate::{
    admin::{Admin, AdminError},
    health::Health,
    readiness::Readiness,
    shutdown::{Shutdown, SignalError, Tasks, TasksError},
};

/// Why a program failed to run or to end properly.
#[derive(Debug, thiserror::Error)]
#[allow(missing_docs, reason = "the error messages document the variants")]
pub enum ProgramError {
    #[error(transparent)]
    Signal(#[from] SignalError),
    #[error(transparent)]
    Admin(#[from] AdminError),
    #[error(transparent)]
    Tasks(#[from] TasksError),
}

/// A running program, which signals shut down. Dropping it aborts its tasks.
#[derive(Debug)]
pub struct Program {
    shutdown: Shutdown,
    readiness: Readiness,
    health: Health,
    tasks: Tasks,
}

impl Program {
    /// Installs the signal handlers. Call it before anything that takes time.
    pub fn start() -> Result<Self, ProgramError> {
        let shutdown = Shutdown::on_signals()?;
        let (readiness, health) = (Readiness::default(), Health::default());
        Ok(Self { tasks: Tasks::new(shutdown.clone()), readiness, health, shutdown })
    }

    /// The program's shutdown.
    pub fn shutdown(&self) -> Shutdown {
        self.shutdown.clone()
    }

    /// The program's readiness.
    pub fn readiness(&self) -> &Readiness {
        &self.readiness
    }

    /// The program's health.
    pub fn health(&self) -> &Health {
        &self.health
    }

    /// Starts the admin server. Readiness conditions have to be registered before.
    pub async fn serve_admin(&mut self, address: SocketAddr, registry: Registry) -> Result<(), ProgramError> {
        self.serve_admin_on(Admin::bind(address).await?, Arc::new(registry));
        Ok(())
    }

    /// Like [`Self::serve_admin`], on an open socket.
    pub fn serve_admin_on(&mut self, admin: Admin, registry: Arc<Registry>) {
        let serve = admin.serve(registry, self.readiness.clone(), self.health.clone(), self.shutdown());
        self.tasks.spawn("admin", serve);
    }

    /// Starts a task that returns by itself soon after the shutdown is requested.
    pub fn spawn(&mut self, name: &'static str, task: impl Future<Output = ()> + Send + 'static) {
        self.tasks.spawn(name, task);
    }

    /// Starts a task that never returns; it is dropped at its await point when the shutdown is
    /// requested.
    pub fn spawn_endless(&mut self, name: &'static str, task: impl Future<Output = ()> + Send + 'static) {
        let shutdown = self.shutdown();
        self.tasks.spawn(name, async move {
            tokio::select! {
                () = task => {}
                () = shutdown.requested() => {}
            }
        });
    }

    /// Runs until the shutdown, then gives the tasks up to `grace` to finish.
    pub async fn finish(self, grace: Duration) -> Result<(), ProgramError> {
        Ok(self.tasks.finish(grace).await?)
    }
}

#[cfg(test)]
mod tests {
    use std::future::pending;

    use super::*;

    const LONG: Duration = Duration::from_mins(1);

    #[tokio::test]
    async fn a_task_without_an_end_is_dropped_when_the_program_ends() {
        let mut program = Program::start().unwrap();
        let shutdown = program.shutdown();
        let (held, dropped) = tokio::sync::oneshot::channel::<()>();
        program.spawn_endless("endless", async {
            let _held = held;
            pending::<()>().await;
        });
        let finished = tokio::spawn(program.finish(LONG));
        tokio::task::yield_now().await;
        assert!(!finished.is_finished());
        shutdown.request();
        finished.await.unwrap().unwrap();
        assert!(dropped.await.is_err());
    }

    #[tokio::test]
    async fn a_task_without_an_end_that_ends_is_told() {
        let mut program = Program::start().unwrap();
        program.spawn_endless("watcher", async {});
        let error = program.finish(LONG).await.unwrap_err();
        assert!(error.to_string().starts_with("task watcher ended before"), "{error}");
    }

    #[tokio::test]
    async fn health_is_served_until_the_end_and_a_taken_address_is_named() {
        let mut program = Program::start().unwrap();
        let taken = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = taken.local_addr().unwrap();
        let error = program.serve_admin(address, Registry::default()).await.unwrap_err();
        assert!(error.to_string().contains(&address.to_string()), "{error}");
        drop(taken);
        program.serve_admin(address, Registry::default()).await.unwrap();
        tokio::net::TcpStream::connect(address).await.unwrap();
        program.shutdown().request();
        program.finish(LONG).await.unwrap();
        assert!(tokio::net::TcpStream::connect(address).await.is_err());
    }
}
