use super::*;

fn asked(line: &[&str]) -> Question {
    Question::of(&line.iter().map(|word| (*word).to_owned()).collect::<Vec<_>>())
}

/// The words that are offered.
fn offered(line: &[&str]) -> Vec<String> {
    match asked(line).wanted {
        Wanted::These(candidates) => candidates.into_iter().map(|candidate| candidate.word).collect(),
        other => panic!("{other:?}"),
    }
}

#[test]
fn the_first_word_is_a_command_with_its_description() {
    let Wanted::These(commands) = asked(&[""]).wanted else { panic!("no commands") };
    let words: Vec<&str> = commands.iter().map(|command| command.word.as_str()).collect();
    for word in ["status", "plan", "explain-node", "doctor", "rules", "completion"] {
        assert!(words.contains(&word), "{word}: {words:?}");
    }
    assert!(commands.iter().all(|command| !command.description.is_empty()), "{commands:?}");
    assert!(!words.contains(&"__complete"), "{words:?}");
    assert_eq!(offered(&[]), words, "no word at all");
    assert_eq!(offered(&["--context", "lab", ""]), words, "after a flag");
}

#[test]
fn names_are_wanted_where_a_command_takes_them() {
    for (line, noun) in [
        (&["status", ""][..], Noun::Object),
        (&["status", "-o", "wide", "we"], Noun::Object),
        (&["explain-node", ""], Noun::Node),
        (&["explain-node", "--output=json", "w"], Noun::Node),
        (&["rules", ""], Noun::Pod),
        (&["doctor", "--service", ""], Noun::Service),
        (&["doctor", "-s", "web/"], Noun::Service),
        (&["doctor", "--service=we"], Noun::Service),
        (&["plan", "-n", ""], Noun::Namespace),
        (&["status", "--operator-namespace", ""], Noun::Namespace),
        (&["rules", "--helper-namespace", ""], Noun::Namespace),
        (&["--context", ""], Noun::Context),
        (&["status", "--context="], Noun::Context),
        (&["status", "--", ""], Noun::Object),
    ] {
        assert_eq!(asked(line).wanted, Wanted::Names(noun), "{line:?}");
    }
}

#[test]
fn a_value_that_is_begun_is_told_from_its_flag() {
    assert_eq!(asked(&["doctor", "--service=web/fr"]).begun, "web/fr");
    assert_eq!(asked(&["doctor", "--service", "web/fr"]).begun, "web/fr");
    assert_eq!(asked(&["status", "we"]).begun, "we");
    assert_eq!(asked(&["status", "--wa"]).begun, "--wa");
}

#[test]
fn files_and_directories_are_left_to_the_shell() {
    assert_eq!(asked(&["plan", "-f", ""]).wanted, Wanted::Files(&["yaml", "yml", "json"]));
    assert_eq!(asked(&["plan", "--filename=x"]).wanted, Wanted::Files(&["yaml", "yml", "json"]));
    assert_eq!(asked(&["status", "--kubeconfig", ""]).wanted, Wanted::Files(&[]));
    assert_eq!(asked(&["doctor", "--from-dir", ""]).wanted, Wanted::Directories);
}

#[test]
fn values_and_flags_come_from_the_command_line_itself() {
    assert_eq!(offered(&["status", "-o", ""]), ["json", "yaml", "wide"]);
    assert_eq!(offered(&["explain-node", "work-1", "--output="]), ["json", "yaml"]);
    assert!(offered(&["completion", ""]).contains(&"bash".to_owned()));
    let flags = offered(&["plan", "--agent-image", "x", "--"]);
    for flag in ["--filename", "--from-dir", "--exit-code", "--context", "--help"] {
        assert!(flags.contains(&flag.to_owned()), "{flag}: {flags:?}");
    }
    assert!(!flags.contains(&"--agent-image".to_owned()), "it is there already: {flags:?}");
    assert!(!flags.contains(&"-f".to_owned()), "{flags:?}");
    assert!(offered(&["plan", "-"]).contains(&"-f".to_owned()));
}

#[test]
fn where_nothing_is_known_nothing_is_offered() {
    for line in [
        &["status", "web", ""][..],
        &["explain-node", "work-1", ""],
        &["rules", "web/a", "--packet", ""],
        &["rules", "web/a", "--image", ""],
        &["nonsense", ""],
        &["status", "--nonsense=x"],
        &["status", "-\u{f6}x", "web", ""],
        &["plan", "-f-", "x"],
    ] {
        assert_eq!(offered(line), Vec::<String>::new(), "{line:?}");
    }
}

#[test]
fn the_cluster_is_the_one_that_the_line_names() {
    let place = asked(&["status", "--context=lab", "--kubeconfig", "/tmp/config", ""]).place;
    assert_eq!(place.context.as_deref(), Some("lab"));
    assert_eq!(place.kubeconfig, Some(PathBuf::from("/tmp/config")));
}
