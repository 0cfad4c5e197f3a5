use std::os::unix::process::ExitStatusExt;

use super::*;

fn start(directory: &tempfile::TempDir, arguments: &[&str]) -> Process {
    let mut command = Command::new(arguments[0]);
    command.args(&arguments[1..]);
    Process::start(command, &directory.path().join("output"))
}

#[tokio::test]
async fn stdout_and_stderr_have_a_file_each() {
    let directory = tempfile::tempdir().unwrap();
    assert!(start(&directory, &["echo", "told"]).end().await.success());
    let mut failed = start(&directory, &["ls", "/nowhere"]);
    assert!(!failed.end().await.success());
    assert_eq!(failed.printed(), "", "the file is a new one");
    assert!(failed.complained().contains("/nowhere"), "{}", failed.complained());
}

#[test]
fn a_killed_process_has_exited() {
    let directory = tempfile::tempdir().unwrap();
    let mut process = start(&directory, &["sleep", "600"]);
    assert_eq!(process.ended(), None);
    process.kill();
    assert_eq!(process.ended().unwrap().signal(), Some(Signal::SIGKILL as i32));
}

/// A wrapper, as in a place of the lab, gets signals for its program.
#[tokio::test]
async fn a_signal_reaches_the_program_of_a_wrapper() {
    let directory = tempfile::tempdir().unwrap();
    let mut command = Command::new("unshare");
    command.args(["--fork", "--", "sleep", "600"]);
    let mut process = Process::start_in_place(command, &directory.path().join("output"));
    let pid = ENDS.until("it has a program", async || process.pid()).await;
    assert_ne!(u32::try_from(pid.as_raw()).unwrap(), process.child.id());
    process.kill();
    assert!(!Path::new(&format!("/proc/{pid}")).exists(), "the program goes on");
}
