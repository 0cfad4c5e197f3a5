//! The processes of a control plane. They must die with the process that started them, even if that
//! one is killed. The parent-death signal does this, but it fires when the parent *thread* ends. So
//! a single thread, which lives as long as the process, starts them all.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::{Mutex, OnceLock, PoisonError, mpsc};
use std::thread;

use super::ControlPlaneError;
use crate::command::{self, CommandError};
use crate::components::{self, Component};

type Spawn = (Command, mpsc::Sender<std::io::Result<Child>>);

static SPAWNER: OnceLock<Mutex<mpsc::Sender<Spawn>>> = OnceLock::new();

pub(super) struct Processes {
    directory: PathBuf,
    children: Mutex<Vec<(String, Child)>>,
}

impl Processes {
    pub(super) fn new(directory: &Path) -> Self {
        Self { directory: directory.to_owned(), children: Mutex::new(Vec::new()) }
    }

    pub(super) fn start(&self, component: Component) -> Result<(), ControlPlaneError> {
        let log = self.log(&component.name);
        let file = |source| ControlPlaneError::File { path: log.clone(), source };
        let output = fs::File::create(&log).map_err(file)?;
        let mut command = Command::new("setpriv");
        command
            .args(["--pdeathsig", "KILL", "--"])
            .arg(&component.program)
            .args(&component.arguments)
            .current_dir(&self.directory)
            .envs(components::RUNTIME)
            .stdin(Stdio::null())
            .stdout(output.try_clone().map_err(file)?)
            .stderr(output);
        let described = command::describe(&command);
        let child = spawn(command).ok_or(ControlPlaneError::Lost)?;
        let child = child.map_err(|source| CommandError::Start { command: described, source })?;
        self.children.lock().unwrap_or_else(PoisonError::into_inner).push((component.name, child));
        Ok(())
    }

    /// Fails if one of the processes has ended.
    pub(super) fn check(&self) -> Result<(), ControlPlaneError> {
        for (name, child) in self.children.lock().unwrap_or_else(PoisonError::into_inner).iter_mut() {
            if matches!(child.try_wait(), Ok(Some(_))) {
                let log = fs::read_to_string(self.log(name)).unwrap_or_default();
                let log = command::last_lines(&log, 8);
                return Err(ControlPlaneError::Ended { component: name.clone(), log });
            }
        }
        Ok(())
    }

    pub(super) fn end(&self) {
        let mut children = self.children.lock().unwrap_or_else(PoisonError::into_inner);
        // In reverse order of starting: clients first, so that they do not log lost connections.
        for (_, mut child) in children.drain(..).rev() {
            let _ = child.kill();
            let _ = child.wait();
        }
    }

    fn log(&self, component: &str) -> PathBuf {
        self.directory.join(format!("{component}.log"))
    }
}

fn spawn(command: Command) -> Option<std::io::Result<Child>> {
    let spawner = SPAWNER.get_or_init(|| {
        let (requests, queue) = mpsc::channel::<Spawn>();
        thread::spawn(move || {
            for (mut command, answer) in queue {
                let _ = answer.send(command.spawn());
            }
        });
        Mutex::new(requests)
    });
    let (answer, result) = mpsc::channel();
    spawner.lock().unwrap_or_else(PoisonError::into_inner).send((command, answer)).ok()?;
    result.recv().ok()
}
