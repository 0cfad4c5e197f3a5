//! The command line, without any cluster: help, completion, and what is refused before a cluster is
//! asked for.

#![allow(clippy::unwrap_used, clippy::panic, reason = "helpers of tests fail as tests do")]

use std::io::Write;
use std::process::{Command, Output, Stdio};

fn kubectl_isp(arguments: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_kubectl-isp"));
    command.args(arguments).env("KUBECONFIG", "/nowhere/kubeconfig").env_remove("KUBERNETES_SERVICE_HOST");
    command
}

fn answer(arguments: &[&str]) -> String {
    let Output { status, stdout, stderr } = kubectl_isp(arguments).output().unwrap();
    assert!(status.success(), "{}", String::from_utf8_lossy(&stderr));
    String::from_utf8(stdout).unwrap()
}

fn refusal(arguments: &[&str], input: &str) -> String {
    let mut command = kubectl_isp(arguments);
    let mut child =
        command.stdin(Stdio::piped()).stderr(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
    // One that does not read it has refused before.
    let _ = child.stdin.take().unwrap().write_all(input.as_bytes());
    let output = child.wait_with_output().unwrap();
    assert_eq!(output.status.code(), Some(1), "{output:?}");
    assert!(output.stdout.is_empty(), "{output:?}");
    String::from_utf8(output.stderr).unwrap()
}

#[test]
fn help_is_called_as_kubectl_calls_it_and_shows_examples_and_exit_codes() {
    let help = answer(&["--help"]);
    for part in [
        "Usage: kubectl isp",
        "2  check: an exposed Service",
        "kubectl isp plan -f web.yaml",
        "status: an object shown is not Ready",
    ] {
        assert!(help.contains(part), "{part}: {help}");
    }
    assert!(
        help.contains("explain-node: the node is not as it should be") && help.contains("LC_ALL"),
        "{help}"
    );
    assert!(answer(&["plan", "--help"]).contains("kubectl isp plan -f -"));
    assert!(answer(&["trace", "--help"]).contains("--to svc/istio-system/istio-ingressgateway:443"));
    assert!(answer(&["rules", "--help"]).contains("--packet 'tcp 203.0.113.5 -> :8080'"));
    assert!(answer(&["probe", "--help"]).contains("--compare before.json"));
    assert_eq!(answer(&["--version"]), format!("kubectl-isp {}\n", env!("CARGO_PKG_VERSION")));
}

#[test]
fn there_is_completion_for_each_shell() {
    for (shell, part) in
        [("bash", "complete -F"), ("zsh", "#compdef kubectl-isp"), ("fish", "complete -c kubectl-isp")]
    {
        let script = answer(&["completion", shell]);
        assert!(script.contains(part) && script.contains("explain-node"), "{shell}");
    }
}

#[test]
fn what_makes_no_sense_is_refused_and_never_by_the_code_that_means_not_ready() {
    for (arguments, part) in [
        (&["status", "-o", "xml"][..], "possible values: json, yaml, wide"),
        (&["plan"], "--filename"),
        (&["explain-node"], "<NODE>"),
        (&["rules", "web"], "expected NAMESPACE/NAME"),
        (&["rules", "web/frontend-1", "--packet", "tcp -> 8080"], "the destination has no port"),
        (&["probe", "--service", "web"], "expected NAMESPACE/NAME"),
        (&["probe", "--nodes", "0"], "expected at least one node"),
        (&["probe", "--target", "other"], "possible values: canary, own"),
        (&["probe", "--compare", "/nowhere/before.json"], "cannot read /nowhere/before.json"),
        (&["probe", "--save", "/nowhere/after.json"], "there is no directory /nowhere"),
        (&["stats"], "similar subcommand exists: 'status'"),
        (&["status", "--namespace", "x"], "--namespace"),
        (&["plan", "-f", "/nowhere/web.yaml"], "cannot read /nowhere/web.yaml"),
    ] {
        let text = refusal(arguments, "");
        assert!(text.contains(part), "{arguments:?}: {text}");
    }
}

#[test]
fn without_a_cluster_the_ways_to_name_one_are_told() {
    for arguments in [
        &["status"][..],
        &["explain-node", "work-1"],
        &["status", "--kubeconfig", "/nowhere/kubeconfig"],
        &["status", "--context", "elsewhere"],
    ] {
        let text = refusal(arguments, "");
        for part in ["/nowhere/kubeconfig", "--kubeconfig", "--context"] {
            assert!(text.contains(part), "{arguments:?}: {text}");
        }
    }
}

#[test]
fn the_file_is_looked_at_before_the_cluster() {
    let text = refusal(&["plan", "-f", "-"], "apiVersion: v1\nkind: Service\nmetadata: {name: web}\n");
    assert_eq!(
        text,
        "error: standard input, document 1: this is Service web (v1); plan accepts only IngressSourcePreserve of \
         sourcepreserve.io/v1alpha1: remove it from the file\n"
    );
}

#[test]
fn an_api_server_that_does_not_answer_is_named() {
    let kubeconfig = tempfile::NamedTempFile::new().unwrap();
    // Nobody listens on the discard port of the loopback.
    let text = "{apiVersion: v1, kind: Config, current-context: a, clusters: [{name: a, cluster: {server: 'http://127.0.0.1:9'}}], \
                users: [{name: a, user: {}}], contexts: [{name: a, context: {cluster: a, user: a}}]}";
    std::fs::write(kubeconfig.path(), text).unwrap();
    let path = kubeconfig.path().to_str().unwrap();
    let text = refusal(&["status", "--kubeconfig", path], "");
    assert!(text.contains("http://127.0.0.1:9 cannot be reached"), "{text}");
    assert!(text.contains("refused") && text.contains("kubectl cluster-info"), "{text}");
}

/// The answer to a request for completion, which has no errors.
fn completed(command: &mut Command) -> String {
    let output = command.output().unwrap();
    assert!(output.status.success() && output.stderr.is_empty(), "{output:?}");
    String::from_utf8(output.stdout).unwrap()
}

#[test]
fn commands_flags_and_values_are_completed_without_a_cluster() {
    let complete = |words: &[&str]| completed(&mut kubectl_isp(&[&["__complete"], words].concat()));
    let commands = complete(&[""]);
    assert!(commands.contains("\nexplain-node\tExplain which preserved Services"), "{commands}");
    assert!(commands.ends_with("\n:4\n"), "{commands}");
    assert_eq!(complete(&["ex"]).lines().count(), 2);
    assert_eq!(complete(&["status", "-o", "y"]), "yaml\n:4\n");
    assert!(complete(&["plan", "--exit"]).starts_with("--exit-code\tExit with 3 if "));
    assert_eq!(complete(&["plan", "-f", ""]), "yaml\nyml\njson\n:8\n");
    assert_eq!(complete(&["doctor", "--from-dir", ""]), ":16\n");
    assert_eq!(complete(&["status", "--kubeconfig", ""]), ":0\n");
    assert_eq!(complete(&["status", ""]), ":4\n", "the cluster cannot be found");
    assert!(complete(&[]).ends_with(":4\n"));
}

/// A kubeconfig for an API server that accepts connections, and never answers.
fn silent_server() -> (std::net::TcpListener, tempfile::NamedTempFile) {
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let server = listener.local_addr().unwrap();
    let kubeconfig = tempfile::NamedTempFile::new().unwrap();
    let text = format!(
        "{{apiVersion: v1, kind: Config, current-context: a, clusters: [{{name: a, cluster: {{server: 'http://{server}'}}}}], \
         users: [{{name: a, user: {{}}}}], contexts: [{{name: a, context: {{cluster: a, user: a}}}}]}}"
    );
    std::fs::write(kubeconfig.path(), text).unwrap();
    (listener, kubeconfig)
}

#[test]
fn completion_does_not_wait_for_a_server_that_is_silent() {
    let (_listener, kubeconfig) = silent_server();
    let started = std::time::Instant::now();
    let mut command = kubectl_isp(&["__complete", "explain-node", ""]);
    assert_eq!(completed(command.env("KUBECONFIG", kubeconfig.path())), ":4\n");
    let waited = started.elapsed();
    assert!(waited.as_secs() >= 2 && waited.as_secs() < 60, "{waited:?}");
    let contexts = completed(
        kubectl_isp(&["__complete", "status", "--context", ""]).env("KUBECONFIG", kubeconfig.path()),
    );
    assert_eq!(contexts, "a\tcluster a\n:4\n");
}

/// What a terminal of 60 columns gets from a command, until its end or for some seconds.
fn on_a_terminal(command: &str, kubeconfig: &std::path::Path) -> String {
    let program = env!("CARGO_BIN_EXE_kubectl-isp");
    let mut script = Command::new("script");
    script.args(["-qec", &format!("timeout 4 {program} {command}"), "/dev/null"]);
    script.env("KUBECONFIG", kubeconfig).env("COLUMNS", "60").stdin(Stdio::null());
    String::from_utf8(script.output().unwrap().stdout).unwrap()
}

#[test]
fn a_terminal_shows_what_is_awaited_and_nothing_else_does() {
    let (_listener, kubeconfig) = silent_server();
    let seen = on_a_terminal("status", kubeconfig.path());
    assert!(seen.starts_with("\rreading ingresssourcepreserves.sourcepreserve.io"), "{seen:?}");
    assert!(seen.is_ascii() && !seen.contains('\u{1b}'), "{seen:?}");
    for elsewhere in ["status | cat", "status -o json > /dev/null"] {
        assert_eq!(on_a_terminal(elsewhere, kubeconfig.path()), "", "{elsewhere}");
    }
    // A command that is quick shows nothing.
    let refused = on_a_terminal("status --context elsewhere", kubeconfig.path());
    assert!(refused.starts_with("error: no cluster is configured"), "{refused:?}");
}

#[test]
fn the_examples_of_output_are_as_the_schemas_say() {
    let examples = isp_lab::docs::examples("docs/output.md", "json").unwrap();
    let commands = ["check", "plan", "explain-node", "rules", "doctor", "trace", "probe"];
    assert_eq!(examples.len(), commands.len());
    for (command, example) in commands.iter().zip(&examples) {
        isp_testkit::schema::assert_output(command, &serde_json::from_str(example).unwrap());
    }
}
