use super::Tally;

fn tally_of(lines: &[&str]) -> Tally {
    let mut tally = Tally::default();
    for line in lines {
        tally.add(line);
    }
    tally
}

#[test]
fn closing_lines_add_up() {
    let tally = tally_of(&[
        "running 3 tests",
        "test view::tests::a_node_sees_itself ... ok",
        "test result: ok. 3 passed; 0 failed; 0 ignored; 0 measured; 0 filtered out; finished in 0.01s",
        "",
        "test result: FAILED. 10 passed; 2 failed; 1 ignored; 0 measured; 4 filtered out; finished in 1.50s",
    ]);

    assert_eq!(tally, Tally { passed: 13, failed: 2, ignored: 1 });
}

#[test]
fn other_lines_count_nothing() {
    for line in [
        "",
        "running 1 test",
        "test result: 3 passed",
        "test tally ... FAILED",
        "    test result: ok. 3 passed; 0 failed; 0 ignored",
        "test result: ok. many passed; few failed",
    ] {
        assert_eq!(tally_of(&[line]), Tally::default(), "{line:?}");
    }
}
