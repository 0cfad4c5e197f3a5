//! `cargo xtask test`: set-up, lint, the test layers, and a summary of what ran and what did not.
//!
//! The lab knows what each layer needs: `isp-lab can-run` checks whether a layer can run on this
//! machine, and `isp-lab provision` builds what is missing.

mod lanes;
mod layer;
mod slowest;
mod summary;
mod tally;

use std::io::{self, Write};
use std::time::Instant;

pub(crate) use layer::Layer;
use slowest::Durations;
use summary::{Ending, Summary};
use tally::Tally;

use crate::cli::chain;
use crate::process::{self, ProcessError};
use crate::workspace::Workspace;
use crate::{lab, lint};

/// Runs the given layers, or lint and all layers. Returns whether everything succeeded.
pub(crate) fn run(workspace: &Workspace, asked: &[Layer]) -> bool {
    let everything = asked.is_empty();
    let layers: Vec<_> = Layer::ALL.into_iter().filter(|each| everything || asked.contains(each)).collect();

    let hindrances = set_up(workspace, &layers);
    let lint = if everything { lint::run(workspace, false) } else { lint::Report::default() };
    let mut durations = Durations::default();
    let run_unless_hindered = |(layer, hindrance): (Layer, Option<Ending>)| {
        (layer, hindrance.unwrap_or_else(|| run_layer(workspace, layer, &mut durations)))
    };
    let summary = Summary {
        lint: lint.failed,
        layers: layers.into_iter().zip(hindrances).map(run_unless_hindered).collect(),
        durations,
        all_must_run: !everything || in_ci(),
    };
    print!("\n{summary}");
    summary.failed() == 0
}

fn in_ci() -> bool {
    std::env::var("CI").is_ok_and(|value| !["", "0", "false"].contains(&value.as_str()))
}

/// Prepares each layer. Returns for each, in order, why it cannot run, or `None`.
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

/// Provisions one layer. Returns why it cannot run, or `None`.
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

/// Why the layer cannot run on this machine, or `None` if it can.
fn can_run(workspace: &Workspace, layer: Layer) -> Result<Option<String>, ProcessError> {
    let mut command = lab::command(workspace);
    let (status, printed) = process::answer(command.arg("can-run").arg(layer.to_string()))?;
    match status.code() {
        Some(0) => Ok(None),
        Some(1) => Ok(Some(String::from_utf8_lossy(&printed).trim().replace('\n', ", "))),
        _ => Err(process::failed(&command, status)),
    }
}

/// Runs the tests of one layer. Every test program runs, even after a failure.
fn run_layer(workspace: &Workspace, layer: Layer, durations: &mut Durations) -> Ending {
    println!("\ntest: {layer}");
    let start = Instant::now();
    let mut tally = Tally::default();
    let mut problems = Vec::new();
    for stage in layer.stages(&workspace.packages) {
        for run in run_stage(workspace, layer, &stage) {
            tally += run.tally;
            durations.append(run.durations);
            problems.extend(run.problem);
        }
    }
    if tally == Tally::default() && problems.is_empty() {
        problems.push(layer.has_no_tests());
    }
    Ending::Ran { tally, problems, duration: start.elapsed() }
}

/// The results of one run of cargo.
struct Run {
    tally: Tally,
    durations: Durations,
    /// Why it failed, if no test did.
    problem: Option<String>,
}

/// Runs a stage.
fn run_stage(workspace: &Workspace, layer: Layer, stage: &[Vec<String>]) -> Vec<Run> {
    let [only] = stage else {
        let run = |arguments: &Vec<String>| run_cargo(workspace, arguments, &mut Quietly::default());
        return lanes::run_all(stage, layer.lanes(), |one, other| layer::must_not_meet(one, other), run);
    };
    vec![run_cargo(workspace, only, &mut io::stdout())]
}

fn run_cargo(workspace: &Workspace, arguments: &[String], output: &mut impl Write) -> Run {
    let (mut tally, mut durations) = (Tally::default(), Durations::default());
    let mut cargo = process::cargo(&workspace.root);
    let result = process::watch(cargo.args(arguments), output, |line| {
        tally.add(line);
        durations.add(line);
    });
    // Failed tests are counted already. A program that crashed or did not compile prints no counts.
    let problem = result.err().filter(|_| tally.failed == 0).map(|error| chain(&error));
    Run { tally, durations, problem }
}

/// Buffers the output of a run until it ends, so that the output of concurrent runs does not
/// interleave.
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
        // A write error only loses output.
        let _ = io::stdout().write_all(&self.0);
    }
}
