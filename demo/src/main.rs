//! The project's story, played on the lab: what each hop sees of its caller, before and after one object is applied, and
//! after it is deleted again, while a client keeps asking.
//!
//! | module | knows |
//! |---|---|
//! | `table` | who asks whom, what must be seen at each stage, and how it is printed; pure |
//! | `world` | the cluster of the story: the lab, the application, the policy, the project's own programs |
//! | `probe` | asking, cell by cell |
//! | `steady` | the client that keeps asking |
//! | `story` | the order of it all |
//! | `screen` | a terminal, or none |

mod probe;
mod screen;
mod steady;
mod story;
mod table;
mod world;

use std::process::ExitCode;

use clap::{Parser, ValueEnum};
use isp_lab::topology::FamilyFlags;
use isp_lab::{LabError, ProxyMode};
use tokio::signal::unix::{SignalKind, signal};

use self::screen::Screen;
use self::story::StoryError;

/// What a shell says of a program that ended by Ctrl-C.
const INTERRUPTED: u8 = 130;

/// Plays the story on a real cluster on this machine: the client's address is lost, one object is applied, it is there; the
/// object is deleted, and everything is as before. Exit code 0 only if every cell of every table is as it should be.
#[derive(Debug, Parser)]
#[command(name = "cargo xtask demo", version)]
pub(crate) struct Arguments {
    /// How the cluster's kube-proxy programs the kernel.
    #[arg(long, value_enum, default_value_t)]
    proxy_mode: ProxyMode,
    /// Without a mesh: an application behind an external address. Quicker.
    #[arg(long, required_if_eq_any([("dual_stack", "true"), ("ipv6_only", "true")]))]
    no_istio: bool,
    #[command(flatten)]
    families: FamilyFlags,
    /// How the non-ingress nodes come to leave the Services alone.
    #[arg(long, value_enum, default_value_t, ignore_case = true)]
    mode: Mode,
    /// Print the tables as JSON to the standard output, and the story to the standard error.
    #[arg(long)]
    json: bool,
    /// Leave the cluster up with the object in place, and say what to try.
    #[arg(long)]
    keep: bool,
    /// The name of the lab.
    #[arg(long, default_value = "demo")]
    name: String,
}

/// The modes of the agent that are there.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
enum Mode {
    /// The stock kube-proxy behind an agent that shows it only what its node may see.
    #[default]
    #[value(name = "Filter")]
    Filter,
}

fn main() -> ExitCode {
    let arguments = Arguments::parse();
    let screen = Screen::new(arguments.json);
    match play(&arguments, &screen) {
        Ok(Some(true)) => ExitCode::SUCCESS,
        Ok(Some(false)) => ExitCode::FAILURE,
        Ok(None) => ExitCode::from(INTERRUPTED),
        Err(error) => {
            screen.fail(&error.to_string());
            ExitCode::FAILURE
        }
    }
}

/// Whether everything was as it should be; `None` when it was interrupted.
fn play(arguments: &Arguments, screen: &Screen) -> Result<Option<bool>, StoryError> {
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(2)
        .enable_all()
        .build()
        .map_err(StoryError::Runtime)?;
    let ended = runtime.block_on(async {
        tokio::select! {
            ended = story::tell(arguments, screen) => ended.map(Some),
            () = interrupted() => Ok(None),
        }
    });
    if matches!(ended, Ok(None)) {
        screen.say("interrupted; the cluster is taken away");
        // What was under way may still write to the lab's directory, so that is waited for first.
        drop(runtime);
        isp_lab::down(&arguments.name)?;
    }
    ended
}

/// Ctrl-C, or whatever else tells a program to end.
async fn interrupted() {
    let wait = async |kind| match signal(kind) {
        Ok(mut signals) => {
            signals.recv().await;
        }
        Err(_) => std::future::pending().await,
    };
    tokio::select! {
        () = wait(SignalKind::interrupt()) => {}
        () = wait(SignalKind::terminate()) => {}
        () = wait(SignalKind::hangup()) => {}
    }
}

impl From<LabError> for StoryError {
    fn from(error: LabError) -> Self {
        Self::Lab(Box::new(error))
    }
}

#[test]
fn the_families_are_chosen_without_a_mesh_and_one_way() {
    let parse = |words: &[&str]| Arguments::try_parse_from([&["demo"], words].concat());
    assert!(parse(&[]).is_ok() && parse(&["--no-istio"]).is_ok());
    for flag in ["--dual-stack", "--ipv6-only"] {
        assert!(parse(&["--no-istio", flag]).is_ok());
        let error = parse(&[flag]).unwrap_err().to_string();
        assert!(error.contains("--no-istio"), "{error}");
    }
    assert!(parse(&["--no-istio", "--dual-stack", "--ipv6-only"]).is_err());
}
