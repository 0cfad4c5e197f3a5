//! The shell of somebody who has the files of a release and no checkout. It hides the repository in
//! a mount namespace.

use std::fs;
use std::path::Path;

use isp_lab::docs::{Block, Terminal};

#[tokio::test]
async fn a_shell_without_a_checkout_has_its_files_but_neither_the_repository_nor_a_compiler() {
    let files = tempfile::tempdir().unwrap();
    fs::write(files.path().join("install.yaml"), "kind: List\n").unwrap();
    let terminal =
        Terminal::open_without_checkout(Path::new("/nowhere/kubeconfig"), &[], files.path()).unwrap();
    let run = async |commands: &str| terminal.run(&Block::of_no_page(commands)).await;

    assert_eq!(run("cat install.yaml").await.unwrap().stdout, "kind: List\n");
    let repository = Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap();
    assert!(repository.join("Cargo.toml").is_file());
    let read = format!("cat {}", repository.join("Cargo.toml").display());
    let error = run(&read).await.unwrap_err().to_string();
    assert!(error.contains("No such file or directory"), "{error}");
    for program in ["cargo", "cc", "git"] {
        assert!(run(&format!("command -v {program}")).await.is_err(), "{program}");
    }

    // What is put into ~/.local/bin is found by its name.
    run("mkdir -p ~/.local/bin\nprintf '#!%s\\necho mine\\n' \"$BASH\" > ~/.local/bin/mine").await.unwrap();
    run("tar --create --file mine.tar --mode=755 --directory ~/.local/bin mine").await.unwrap();
    run("tar --extract --file mine.tar --directory ~/.local/bin").await.unwrap();
    assert_eq!(run("mine").await.unwrap().stdout, "mine\n");
    assert!(repository.join("Cargo.toml").is_file(), "others still have it");
}
