//! Log output and command-line options.

use std::sync::{Arc, Mutex};

use clap::Parser;
use tracing::{debug, info, info_span, subscriber::with_default, warn};

use super::*;

/// Does the work of a program.
#[derive(Debug, Parser)]
#[command(name = "program")]
struct Cli {
    #[command(flatten)]
    log: LogArgs,
}

#[derive(Clone, Default)]
struct Output(Arc<Mutex<Vec<u8>>>);

impl Write for Output {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.lock().unwrap().write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

fn logged(arguments: &[&str], events: impl FnOnce()) -> Vec<String> {
    let args = Cli::parse_from([&["program"], arguments].concat()).log;
    let output = Output::default();
    let writer = output.clone();
    with_default(subscriber(&args, move || writer.clone()), events);
    let bytes = output.0.lock().unwrap().clone();
    String::from_utf8(bytes).unwrap().lines().map(str::to_owned).collect()
}

#[test]
fn by_default_an_event_is_a_json_object_with_its_fields_beside_the_message() {
    let lines = logged(&[], || {
        info!(node = "node-1", watches = 3, "view changed");
        debug!("not this one");
    });
    assert_eq!(lines.len(), 1, "{lines:?}");
    let event: serde_json::Value = serde_json::from_str(&lines[0]).unwrap();
    assert_eq!(event["level"], "INFO");
    assert_eq!(event["message"], "view changed");
    assert_eq!(event["node"], "node-1");
    assert_eq!(event["watches"], 3);
    assert_eq!(event["target"], "isp_runtime::telemetry::tests");
    assert!(event["timestamp"].as_str().unwrap().ends_with('Z'));
}

#[test]
fn an_event_in_a_span_names_it() {
    let lines = logged(&[], || info_span!("request", path = "/api").in_scope(|| info!("forwarded")));
    let event: serde_json::Value = serde_json::from_str(&lines[0]).unwrap();
    assert_eq!(event["spans"], serde_json::json!([{ "name": "request", "path": "/api" }]));
}

#[test]
fn text_is_for_reading() {
    let lines = logged(&["--log-format", "text"], || info!(node = "node-1", "view changed"));
    assert_eq!(lines.len(), 1);
    assert!(
        lines[0].ends_with(" INFO isp_runtime::telemetry::tests: view changed node=\"node-1\""),
        "{lines:?}"
    );
}

#[test]
fn an_event_is_one_line_in_either_format() {
    for format in ["json", "text"] {
        let lines = logged(&["--log-format", format], || warn!(peer = %"a\r\nb\u{1b}[0m", "one\ntwo"));
        assert_eq!(lines.len(), 1, "{lines:?}");
        assert!(lines[0].contains("one\\ntwo") && lines[0].contains("a\\r\\nb"), "{lines:?}");
        assert!(!lines[0].contains('\u{1b}'), "{lines:?}");
    }
}

#[test]
fn the_level_decides_what_is_logged() {
    let events = || {
        debug!("detail");
        debug!(target: "hyper", "noise");
        warn!("trouble");
    };
    let messages = |level: &str| logged(&["--log-format=text", "--log-level", level], events).len();
    assert_eq!(messages("debug"), 3);
    assert_eq!(messages("debug,hyper=warn"), 2);
    assert_eq!(messages("warn"), 1);
    assert_eq!(messages("off"), 0);
}

#[test]
fn a_bad_level_or_format_is_refused_with_what_would_do() {
    let refused = |argument: &str| Cli::try_parse_from(["program", argument]).unwrap_err().to_string();
    let level = refused("--log-level=info,hyper=loud");
    assert!(level.contains("\"hyper=loud\" is neither LEVEL nor TARGET=LEVEL"), "{level}");
    assert!(refused("--log-format=xml").contains("[possible values: json, text]"));
}

#[test]
fn the_options_leave_the_programs_own_help_alone() {
    let help = Cli::try_parse_from(["program", "--help"]).unwrap_err().to_string();
    assert!(help.starts_with("Does the work of a program"), "{help}");
}
