//! The project's demo on the lab: the source IP that each hop sees, before and after one object is
//! applied and after it is deleted again, under continuous traffic.
//!
//! | module | knows |
//! |---|---|
//! | `table` | sources, destinations, the expected result at each stage, and how to print it; pure |
//! | `world` | the demo's cluster: the lab, the application, the policy, the project's own programs |
//! | `probe` | sends the requests of a table |
//! | `steady` | the client that sends continuously |
//! | `story` | the order of the steps |
//! | `screen` | output to a terminal or a file |

mod probe;
mod screen;
mod steady;
mod story;
mod table;
mod world;

use std::fmt;
use std::process::ExitCode;

use clap::{Parser, ValueEnum};
use isp_lab::topology::FamilyFlags;
use isp_lab::{LabError, ProxyMode};
use tokio::signal::unix::{SignalKind, signal};

use self::screen::Screen;
use self::story::StoryError;

/// The exit code by convention after Ctrl-C: 128 + SIGINT.
const INTERRUPTED: u8 = 130;

/// Runs the demo on a real cluster on this machine: the client's source IP is lost, one object is
/// applied and preserves it, the object is deleted and everything is as before. The exit code is 0
/// only if every result is as expected.
#[derive(Debug, Parser)]
#[command(name = "cargo xtask demo", version)]
pub(crate) struct Arguments {
    /// kube-proxy's mode.
    #[arg(long, value_enum, default_value_t)]
    proxy_mode: ProxyMode,
    /// Run without Istio: an application behind an external IP. Faster.
    #[arg(long, required_if_eq_any([("dual_stack", "true"), ("ipv6_only", "true")]))]
    no_istio: bool,
    #[command(flatten)]
    families: FamilyFlags,
    /// How non-ingress nodes stop intercepting traffic to the Services' external IPs: the object's
    /// `spec.mode`.
    #[arg(long, value_enum, default_value_t, ignore_case = true)]
    mode: Mode,
    /// Print the tables as JSON to standard output, and all other output to standard error.
    #[arg(long)]
    json: bool,
    /// Keep the cluster running with the object applied, and print commands to try.
    #[arg(long)]
    keep: bool,
    /// The name of the lab.
    #[arg(long, default_value = "demo")]
    name: String,
}

/// The implemented modes of the agent.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
enum Mode {
    /// The stock kube-proxy reads the API through an agent that removes the external IPs.
    #[default]
    #[value(name = "Filter")]
    Filter,
    /// kube-proxy skips the Services, and an agent on every node serves them. kube-proxy's objects
    /// and pods are compared and must not change.
    #[value(name = "Beside")]
    Beside,
}

impl fmt::Display for Mode {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str(match self {
            Self::Filter => "Filter",
            Self::Beside => "Beside",
        })
    }
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

/// Whether all results were as expected; `None` if interrupted.
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
        screen.say("interrupted; removing the cluster");
        // Waits for blocking tasks first: they may still write to the lab's directory.
        drop(runtime);
        isp_lab::down(&arguments.name)?;
    }
    ended
}

/// Completes on Ctrl-C or another signal that asks the program to end.
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
