use super::*;

fn durations(lines: &[&str]) -> Durations {
    let mut durations = Durations::default();
    for line in lines {
        durations.add(line);
    }
    durations
}

fn result(seconds: &str) -> String {
    format!(
        "test result: ok. 3 passed; 0 failed; 0 ignored; 0 measured; 0 filtered out; finished in {seconds}s"
    )
}

#[test]
fn each_program_has_the_time_of_its_own_result_line() {
    let found = durations(&[
        "     Running unittests src/lib.rs (/work/target/debug/deps/isp_plan-43b891127be5a349)",
        "test plan::tests::finished ... ok",
        &result("171.08"),
        "     Running tests/api_plan/main.rs (target/debug/deps/api_plan-0123456789abcdef)",
        // It crashed, so it has no result line.
        "     Running tests/loopback.rs (target/debug/deps/loopback-0123456789abcdef)",
        &result("0.50"),
        "   Doc-tests isp_api",
        &result("2.00"),
    ]);
    assert_eq!(
        found.to_string(),
        "   171.1 s  isp_plan\n     2.0 s  isp_api (examples in docs)\n     0.5 s  loopback\n"
    );
}

#[test]
fn the_ten_slowest_of_all_runs_are_listed() {
    let mut all = Durations::default();
    for number in 1..=12 {
        let running =
            format!("     Running tests/a.rs (target/debug/deps/program_{number}-0123456789abcdef)");
        all.append(durations(&[&running, &result(&number.to_string())]));
    }
    let text = all.to_string();
    assert_eq!(text.lines().count(), 10);
    assert_eq!(text.lines().next(), Some("    12.0 s  program_12"));
    assert_eq!(text.lines().last(), Some("     3.0 s  program_3"));
}

#[test]
fn other_lines_are_no_programs() {
    let found = durations(&["running 3 tests", "Running late (very)", &result("1.00"), "finished in 9.99s"]);
    assert_eq!(found.to_string(), "");
}
