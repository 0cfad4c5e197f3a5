use std::path::Path;

use super::{Block, DocsError, Terminal, commands, read};

const PAGE: &str = "\
# A page
```sh test=one
ls   # what there is

cd docs
```
```yaml
a: 1
```
  ```console test=two needs=nothing
$ kubectl get \\
    pods
NAME  READY
$ true
  ```
";

fn block(text: &str) -> Block {
    read("a.md", &format!("```sh test=it\n{text}\n```\n")).remove(0)
}

fn terminal() -> Terminal {
    Terminal::open(Path::new("/nowhere/kubeconfig"), &[]).unwrap()
}

#[test]
fn blocks_are_read_with_their_place_and_notes() {
    let blocks = read("a.md", PAGE);
    let told: Vec<_> =
        blocks.iter().map(|block| (block.line, block.language.as_str(), block.notes.join(" "))).collect();
    let want = [(2, "sh", "test=one"), (7, "yaml", ""), (10, "console", "test=two needs=nothing")];
    assert_eq!(told, want.map(|(line, language, notes)| (line, language, notes.to_owned())));
    assert_eq!(blocks[1].text(), "a: 1\n");
    assert_eq!(blocks[0].to_string(), "a.md:2:\nls   # what there is\n\ncd docs\n");
}

#[test]
fn of_a_console_what_is_typed_and_what_is_printed_are_told_apart() {
    let [_, _, console] = &read("a.md", PAGE)[..] else { panic!("three blocks") };
    assert_eq!(console.commands(), "kubectl get \\\n    pods\ntrue\n");
    assert_eq!(console.printed(), "NAME  READY\n");
}

#[test]
fn words_are_those_of_the_commands_alone() {
    assert_eq!(read("a.md", PAGE)[0].words(), [vec!["ls"], vec!["cd", "docs"]]);
}

#[test]
fn a_test_that_takes_another_number_of_blocks_is_told() {
    match commands::<1>("docs/writing.md", "nobody") {
        Err(DocsError::Count { wanted: 1, found, .. }) => assert_eq!(found, [""; 0]),
        other => panic!("{other:?}"),
    }
}

#[tokio::test]
async fn what_a_test_adds_comes_after_the_last_command() {
    let printed = terminal().run(&block("echo one\necho two").with("and three")).await.unwrap().stdout;
    assert_eq!(printed, "one\ntwo and three\n");
}

#[tokio::test]
async fn a_block_finds_the_repository_and_leaves_it_alone() {
    let terminal = terminal();
    terminal.save("mine.txt", "saved\n").unwrap();
    let written =
        terminal.run(&block("test -f manifests/samples/minimal.yaml\ncat mine.txt > theirs.txt")).await;
    assert_eq!(written.unwrap().stdout, "");
    assert_eq!(terminal.run(&block("cat theirs.txt")).await.unwrap().stdout, "saved\n");
    assert!(!super::repository().join("theirs.txt").exists());
}

#[tokio::test]
async fn no_command_of_a_block_may_fail_and_the_failure_has_its_place() {
    for text in ["echo before\nfalse\necho after", "echo before\nfalse | cat", "echo before\necho $unset"] {
        let error = terminal().run(&block(text)).await.unwrap_err().to_string();
        assert!(error.starts_with("a.md:1:\n") && error.contains("\nbefore\n"), "{error}");
        assert!(!error.ends_with("after\n"), "{error}");
    }
}

#[tokio::test]
async fn a_block_has_nothing_of_the_users_but_his_path() {
    let printed = terminal().run(&block("echo \"$KUBECONFIG $(env | grep -c ^CARGO || true)\"")).await;
    assert_eq!(printed.unwrap().stdout, "/nowhere/kubeconfig 0\n");
}
