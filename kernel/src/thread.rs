//! The kernel for asynchronous programs: its calls run on a thread of their own, which in between
//! waits for changes by others.

use std::os::fd::AsFd;
use std::sync::Arc;
use std::thread;
use std::time::Duration;

use isp_dataplane::netlink::Change;
use nix::sys::eventfd::{EfdFlags, EventFd};
use thiserror::Error;
use tokio::sync::mpsc::error::TryRecvError;
use tokio::sync::{mpsc, oneshot};

use crate::kernel::Kernel;
use crate::socket::SocketError;

type Job = Box<dyn FnOnce(&mut Kernel) + Send>;

/// The thread has ended. [`Changes::next`] says why.
#[derive(Debug, Error)]
#[error("the thread that talks to the kernel has ended")]
pub struct Stopped;

/// Room for one change, which already means that the tables have to be read again, and for the
/// error that ends the thread.
const ROOM: usize = 2;

/// How long the thread waits before it looks again, whatever happens.
const LOOK: Duration = Duration::from_mins(1);

/// A handle of the thread. The thread ends when the handle is dropped.
pub struct KernelThread {
    jobs: Option<mpsc::Sender<Job>>,
    wake: Arc<EventFd>,
}

/// Changes of the tables by others.
pub struct Changes(mpsc::Receiver<Result<Change, SocketError>>);

impl Changes {
    /// The next change. Ends with the error that ended the thread, and then with `None`. A change
    /// is left out if the one before it has not been taken yet. May be cancelled.
    pub async fn next(&mut self) -> Option<Result<Change, SocketError>> {
        self.0.recv().await
    }
}

impl KernelThread {
    /// Starts the thread.
    pub fn start() -> Result<(Self, Changes), SocketError> {
        let kernel = Kernel::open()?;
        let flags = EfdFlags::EFD_CLOEXEC | EfdFlags::EFD_NONBLOCK;
        let wake = EventFd::from_flags(flags).map_err(|errno| SocketError::Open(errno.into()))?;
        let wake = Arc::new(wake);
        let (jobs, to_do) = mpsc::channel(1);
        let (report, changes) = mpsc::channel(ROOM);
        let woken = Arc::clone(&wake);
        let thread = thread::Builder::new().name("kernel".to_owned());
        thread.spawn(move || run(kernel, to_do, &woken, &report)).map_err(SocketError::Open)?;
        Ok((Self { jobs: Some(jobs), wake }, Changes(changes)))
    }

    /// Runs a function with the kernel and returns its result. The function runs to its end even if
    /// this call is cancelled.
    pub async fn run<T: Send + 'static>(
        &mut self,
        job: impl FnOnce(&mut Kernel) -> T + Send + 'static,
    ) -> Result<T, Stopped> {
        let (answer, answered) = oneshot::channel();
        let job: Job = Box::new(move |kernel| {
            // Nobody waits for the answer of a cancelled call.
            let _ = answer.send(job(kernel));
        });
        let jobs = self.jobs.as_ref().ok_or(Stopped)?;
        jobs.send(job).await.map_err(|_| Stopped)?;
        self.wake.write(1).map_err(|_| Stopped)?;
        answered.await.map_err(|_| Stopped)
    }
}

impl Drop for KernelThread {
    fn drop(&mut self) {
        self.jobs = None;
        // Without it, the thread ends when it looks the next time.
        let _ = self.wake.write(1);
    }
}

fn run(
    mut kernel: Kernel,
    mut jobs: mpsc::Receiver<Job>,
    wake: &EventFd,
    report: &mpsc::Sender<Result<Change, SocketError>>,
) {
    loop {
        let result = kernel.wait(Some(wake.as_fd()), LOOK).and_then(|()| {
            // Reading resets it; it is empty if a notification woke the thread.
            let _ = wake.read();
            kernel.change_so_far()
        });
        match result {
            // A change is covered by one that still waits to be taken.
            Ok(Some(change)) if report.capacity() == ROOM => drop(report.try_send(Ok(change))),
            Ok(_) => {}
            Err(error) => return drop(report.try_send(Err(error))),
        }
        loop {
            match jobs.try_recv() {
                Ok(job) => job(&mut kernel),
                Err(TryRecvError::Empty) => break,
                Err(TryRecvError::Disconnected) => return,
            }
        }
    }
}
