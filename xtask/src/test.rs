//! `cargo xtask test`: set-up, lint, then the tests layer by layer, and a summary that says what ran and what did not.
//!
//! What the layers need from the machine is the lab's knowledge: `isp-lab can-run` says whether a layer can run here,
//! `isp-lab provision` builds what is missing.

mod layer;
mod summary;
mod tally;

use std::io::{self, Write};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, PoisonError};
use std::thread;
use std::time::Instant;

pub(crate) use layer::Layer;
use summary::{Ending, Summary};
use tally::Tally;

use crate::cli::chain;
use crate::process::{self, ProcessError};
use crate::workspace::Workspace;
use crate::{lab, lint};

/// Runs the layers that are asked for, or lint and all of them. Whether all is well.
pub(crate) fn run(workspace: &Workspace, asked: &[Layer]) -> bool {
    let everything = asked.is_empty();
    let layers: Vec<_> = Layer::ALL.into_iter().filter(|each| everything || asked.contains(each)).collect();

    let hindrances = set_up(workspace, &layers);
    let lint = if everything { lint::run(workspace, false) } else { lint::Report::default() };
    let run_unless_hindered = |(layer, hindrance): (Layer, Option<Ending>)| {
        (layer, hindrance.unwrap_or_else(|| run_layer(workspace, layer)))
    };
    let summary = Summary {
        lint: lint.failed,
        layers: layers.into_iter().zip(hindrances).map(run_unless_hindered).collect(),
        all_must_run: !everything || in_ci(),
    };
    print!("\n{summary}");
    summary.failed() == 0
}

fn in_ci() -> bool {
    std::env::var("CI").is_ok_and(|value| !["", "0", "false"].contains(&value.as_str()))
}

/// Makes each layer ready to run; says of each, in their order, what keeps it from running.
fn set_up(workspace: &Workspace, layers: &[Layer]) -> Vec<Option<Ending>> {
    if layers == [Layer::Unit] {
        return vec![None];
    }
    println!("set-up: building the lab's programs");
    let start = Instant::now();
    if let Err(error) = lab::build(workspace) {
        let reason = format!("the lab's programs do not build: {}", chain(&error));
        println!("set-up: {reason}");
        let broken = |layer: &Layer| (*layer != Layer::Unit).then(|| Ending::SetUpFailed(reason.clone()));
        return layers.iter().map(broken).collect();
    }
    println!("set-up: building the lab's programs ok, {:.1} s", start.elapsed().as_secs_f64());
    layers
        .iter()
        .map(|layer| if *layer == Layer::Unit { None } else { provision(workspace, *layer) })
        .collect()
}

/// Builds what one layer needs; what keeps it from running.
fn provision(workspace: &Workspace, layer: Layer) -> Option<Ending> {
    println!("set-up: {layer}");
    let start = Instant::now();
    let hindrance = match can_run(workspace, layer) {
        Ok(None) => {
            let built =
                process::run(lab::command(workspace).args(["provision", "--for"]).arg(layer.to_string()));
            built.err().map(|error| Ending::SetUpFailed(chain(&error)))
        }
        Ok(Some(reason)) => Some(Ending::CannotRun(reason)),
        Err(error) => Some(Ending::SetUpFailed(chain(&error))),
    };
    let seconds = start.elapsed().as_secs_f64();
    match &hindrance {
        None => println!("set-up: {layer} ok, {seconds:.1} s"),
        Some(Ending::CannotRun(reason)) => println!("set-up: {layer} cannot run here: {reason}"),
        Some(Ending::SetUpFailed(reason)) => println!("set-up: {layer} FAILED, {seconds:.1} s: {reason}"),
        Some(Ending::Ran { .. }) => {}
    }
    hindrance
}

/// Why the layer cannot run on this machine, if it cannot.
fn can_run(workspace: &Workspace, layer: Layer) -> Result<Option<String>, ProcessError> {
    let mut command = lab::command(workspace);
    let (status, printed) = process::answer(command.arg("can-run").arg(layer.to_string()))?;
    match status.code() {
        Some(0) => Ok(None),
        Some(1) => Ok(Some(String::from_utf8_lossy(&printed).trim().replace('\n', ", "))),
        _ => Err(process::failed(&command, status)),
    }
}

/// Runs the tests of one layer; every test program runs, whatever the ones before it found.
fn run_layer(workspace: &Workspace, layer: Layer) -> Ending {
    println!("\ntest: {layer}");
    let start = Instant::now();
    let mut tally = Tally::default();
    let mut problems = Vec::new();
    for stage in layer.stages(&workspace.packages) {
        for (found, problem) in run_stage(workspace, &stage) {
            tally += found;
            problems.extend(problem);
        }
    }
    if tally == Tally::default() && problems.is_empty() {
        problems.push(layer.has_no_tests());
    }
    Ending::Ran { tally, problems, duration: start.elapsed() }
}

/// How many runs of a stage go side by side. They wait more than they work.
const SIDE_BY_SIDE: usize = 2;

/// Runs a stage. What each run counted, and what kept it from counting.
fn run_stage(workspace: &Workspace, stage: &[Vec<String>]) -> Vec<(Tally, Option<String>)> {
    let [only] = stage else {
        let (next, found) = (AtomicUsize::new(0), Mutex::new(Vec::new()));
        let work = || {
            while let Some(arguments) = stage.get(next.fetch_add(1, Ordering::Relaxed)) {
                let ended = run_cargo(workspace, arguments, &mut Quietly::default());
                found.lock().unwrap_or_else(PoisonError::into_inner).push(ended);
            }
        };
        thread::scope(|scope| {
            for _ in 0..SIDE_BY_SIDE {
                scope.spawn(work);
            }
        });
        return found.into_inner().unwrap_or_else(PoisonError::into_inner);
    };
    vec![run_cargo(workspace, only, &mut io::stdout())]
}

fn run_cargo(
    workspace: &Workspace,
    arguments: &[String],
    output: &mut impl Write,
) -> (Tally, Option<String>) {
    let mut tally = Tally::default();
    let mut cargo = process::cargo(&workspace.root);
    let result = process::watch(cargo.args(arguments), output, |line| tally.add(line));
    // A test that failed has been counted; a program that died or did not compile has no line to count.
    let problem = result.err().filter(|_| tally.failed == 0).map(|error| chain(&error));
    (tally, problem)
}

/// Keeps what is printed until it is whole, so that what runs side by side is read one after another.
#[derive(Default)]
struct Quietly(Vec<u8>);

impl Write for Quietly {
    fn write(&mut self, text: &[u8]) -> io::Result<usize> {
        self.0.write(text)
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl Drop for Quietly {
    fn drop(&mut self) {
        // Where nobody reads, nothing is lost but words.
        let _ = io::stdout().write_all(&self.0);
    }
}
