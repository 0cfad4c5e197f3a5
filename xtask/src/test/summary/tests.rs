use std::time::Duration;

use super::{Ending, Summary};
use crate::test::slowest::Durations;
use crate::test::{Layer, Tally};

fn ran(passed: usize, failed: usize, ignored: usize) -> Ending {
    let tally = Tally { passed, failed, ignored };
    Ending::Ran { tally, problems: vec![], duration: Duration::from_millis(12_340) }
}

fn summary(layers: Vec<(Layer, Ending)>) -> Summary {
    Summary { lint: vec![], layers, durations: Durations::default(), all_must_run: false }
}

#[test]
fn a_good_run_is_a_table_and_the_closing_line() {
    let all = summary(vec![(Layer::Unit, ran(120, 0, 0)), (Layer::Kernel, ran(7, 0, 0))]);

    assert_eq!(
        all.to_string(),
        "layer     passed  failed  ignored  seconds\n\
         unit         120       0        0     12.3\n\
         kernel         7       0        0     12.3\n\
         127 passed, 0 failed\n"
    );
    assert_eq!(all.failed(), 0);
}

#[test]
fn a_layer_that_cannot_run_is_a_notice_unless_all_must_run() {
    let mut some =
        summary(vec![(Layer::Unit, ran(3, 0, 0)), (Layer::Lab, Ending::CannotRun("needs root".to_owned()))]);
    assert_eq!(some.failed(), 0);
    assert!(some.to_string().ends_with("lab      not run: needs root\n3 passed, 0 failed\n"));

    some.all_must_run = true;
    assert_eq!(some.failed(), 1);
    assert!(some.to_string().ends_with("failed: lab: cannot run here: needs root\n3 passed, 1 failed\n"));
}

#[test]
fn a_set_up_that_fails_is_a_failure_everywhere() {
    let none = summary(vec![(Layer::Api, Ending::SetUpFailed("no space left".to_owned()))]);

    assert_eq!(none.failed(), 1);
    assert!(none.to_string().ends_with("failed: api: no space left\n0 passed, 1 failed\n"));
}

#[test]
fn ignored_tests_count_as_failed() {
    let ignored = summary(vec![(Layer::Unit, ran(3, 1, 2))]);

    assert_eq!(ignored.failed(), 3);
    assert!(ignored.to_string().ends_with("ignored tests count as failed\n3 passed, 3 failed\n"));
}

#[test]
fn lint_and_programs_that_die_count_as_failed() {
    let problems = vec!["`cargo test` failed, exit status: 101".to_owned()];
    let died = Ending::Ran { tally: Tally::default(), problems, duration: Duration::ZERO };
    let broken = Summary { lint: vec!["clippy"], ..summary(vec![(Layer::Api, died)]) };

    assert!(broken.to_string().ends_with(
        "failed: lint: clippy\n\
         failed: api: `cargo test` failed, exit status: 101\n\
         0 passed, 2 failed\n"
    ));
}

#[test]
fn the_slowest_programs_stand_below_the_layers() {
    let mut one = summary(vec![(Layer::Lab, ran(1, 0, 0))]);
    one.durations.add("     Running tests/lab_mesh/main.rs (target/debug/deps/lab_mesh-0123456789abcdef)");
    one.durations
        .add("test result: ok. 1 passed; 0 failed; 0 ignored; 0 measured; 0 filtered out; finished in 9.00s");
    let end = "slowest test programs\n     9.0 s  lab_mesh\n1 passed, 0 failed\n";
    assert!(one.to_string().ends_with(end), "{one}");
}
