use super::*;

/// `+` has an endpoint, `*` is an ingress node, `!` is not ready, `w` runs Windows.
fn nodes(text: &str) -> Vec<Candidate> {
    let node = |word: &str| {
        let name = word.trim_end_matches(['+', '*', '!', '^']).to_owned();
        let marks = &word[name.len()..];
        Candidate {
            ready: !marks.contains('!'),
            ingress: marks.contains('*'),
            has_endpoint: marks.contains('+'),
            linux: !marks.contains('^'),
            name,
        }
    };
    text.split(' ').map(node).collect()
}

fn chosen(text: &str, asked: Option<&str>) -> String {
    let asked = asked.map(|asked| asked.parse().unwrap());
    match choose(&nodes(text), asked.as_ref()) {
        Ok(Chosen { targets, clients }) => format!("{} | {}", targets.join(" "), clients.join(" ")),
        Err(why) => format!("{why:?}"),
    }
}

#[test]
fn nodes_are_chosen() {
    for (cluster, asked, expected) in [
        ("edge*+ w1 w2 w3", None, "edge | edge w1 w2"),
        ("w3 w2 w1 edge*+", None, "edge | edge w1 w2"),
        ("edge*+", None, "edge | edge"),
        ("edge*+ edge2* w1", None, "edge | edge edge2 w1"),
        ("a+ b+ c+ d+ e*+ x y z", None, "a b e | a b e x y"),
        ("edge*+ w1! w2^ w3", None, "edge | edge w3"),
        ("edge* w1", None, "NoEndpoints"),
        ("edge*+! w1", None, "NoEndpoints"),
        ("edge*+ w1 w2 w3", Some("1"), "edge | edge"),
        ("edge*+ w1 w2 w3", Some("2"), "edge | edge w1"),
        ("edge*+ w1 w2 w3", Some("9"), "edge | edge w1 w2 w3"),
        ("a+ b+ c+ x", Some("4"), "a b c | a b c x"),
        ("edge*+ w1 w2 w3", Some("w3"), "edge | w3"),
        ("edge*+ w1 w2 w3", Some("w3,edge"), "edge | edge w3"),
        ("edge*+ w1+ w2", Some("w1, w2"), "w1 | w1 w2"),
        ("edge*+ w1", Some("w9"), "Unknown(\"w9\")"),
        ("edge*+ w1!", Some("w1"), "NotReady(\"w1\")"),
    ] {
        assert_eq!(chosen(cluster, asked), expected, "{cluster} {asked:?}");
    }
}

#[test]
fn of_five_thousand_nodes_a_few_are_chosen() {
    let all: Vec<String> = (0..5000).map(|n| format!("n{n:04}{}", if n < 2500 { "+" } else { "" })).collect();
    assert_eq!(chosen(&all.join(" "), None), "n0000 n0001 n0002 | n0000 n0001 n0002 n2500 n2501");
}

#[test]
fn a_choice_is_names_or_a_number() {
    assert_eq!("a, b".parse(), Ok(NodeChoice::Named(vec!["a".to_owned(), "b".to_owned()])));
    assert_eq!("3".parse(), Ok(NodeChoice::Number(3)));
    for bad in ["", "0", "a,,b", ","] {
        assert!(bad.parse::<NodeChoice>().is_err(), "{bad}");
    }
}
