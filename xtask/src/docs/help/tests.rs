use std::convert::Infallible;

use super::{Asker, Help, Program};

const TOP: &str = "\
How objects stand

Usage: kubectl isp [OPTIONS] <COMMAND>

Commands:
  status        How objects stand, with a text that goes
                on in the next line
  explain-node  What a node may see
  help          Print this message

Options:
      --context <NAME>  The context
  -h, --help            Print help

Examples:
  kubectl isp status --not-a-flag
";
const STATUS: &str = "\
Usage: kubectl isp status [OPTIONS] [NAME]

Options:
  -o, --output <FORMAT>
          json and yaml
  -w, --watch[=<X>]
";

fn fault(command: &str) -> Option<String> {
    let mut asker = Asker::new(|program: Program, path: &[String]| {
        assert_eq!(program.file, "kubectl-isp");
        Ok::<_, Infallible>(if path.is_empty() { TOP } else { STATUS }.to_owned())
    });
    let words: Vec<String> = command.split(' ').map(str::to_owned).collect();
    asker.find_fault(&words).unwrap()
}

#[test]
fn commands_and_flags_are_read_off_the_help() {
    let help = Help::read(TOP);
    assert_eq!(Vec::from_iter(help.commands), ["explain-node", "help", "status"]);
    let flags = [("--context", true), ("--help", false), ("-h", false)];
    assert_eq!(Vec::from_iter(help.flags), flags.map(|(flag, takes_value)| (flag.to_owned(), takes_value)));
}

#[test]
fn what_there_is_may_be_written() {
    for command in [
        "kubectl isp status web --output=json -o wide",
        "kubectl isp --context lab status",
        "kubectl isp status --context lab",
        "kubectl isp …",
        "kubectl isp COMMAND",
        "kubectl get nodes --whatever",
        "kubectl isp status -- --anything",
    ] {
        assert_eq!(fault(command), None, "{command}");
    }
}

#[test]
fn what_there_is_not_is_named() {
    assert_eq!(fault("kubectl isp stats").unwrap(), "kubectl isp has no command stats");
    assert_eq!(fault("kubectl isp status --wide").unwrap(), "kubectl isp status has no --wide");
    assert_eq!(fault("kubectl-isp status -x").unwrap(), "kubectl-isp status has no -x");
}
