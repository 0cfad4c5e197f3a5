use super::*;
use crate::model::{Event, Finding, Node, Role, Service, Severity, Stage};

/// Text that means something in HTML, in a script, in an attribute and to a terminal.
const HOSTILE: &str = "</script><!--<script>\"'&<img onerror=x>\u{1b}[2J\u{202e}";

fn hostile() -> Report {
    let text = || HOSTILE.to_owned();
    Report {
        title: text(),
        time: text(),
        origin: text(),
        stages: vec![Stage { label: text(), basis: text() }],
        nodes: vec![Node {
            name: text(),
            pool: text(),
            role: Role::Ingress,
            ready: true,
            addresses: vec![text()],
            remark: text(),
        }],
        services: vec![Service {
            name: text(),
            kind: text(),
            policies: vec![text()],
            objects: vec![Some(text())],
            ways: vec![],
        }],
        findings: vec![Finding {
            code: text(),
            severity: Severity::Error,
            subject: text(),
            line: text(),
            reason: text(),
            remedy: vec![text()],
        }],
        timeline: vec![Event {
            time: text(),
            warning: true,
            object: text(),
            reason: text(),
            message: text(),
            count: 2,
        }],
        gaps: vec![text()],
        ..Report::default()
    }
}

#[test]
fn text_from_the_cluster_is_nowhere_markup() {
    let page = html(&hostile(), Use::File);
    assert_eq!(page.matches("<script").count(), 2);
    assert_eq!(page.matches("</script>").count(), 2);
    for part in ["<img", "<!--", "\u{1b}", "\u{202e}", "\"'&"] {
        assert!(!page.contains(part), "{part:?}");
    }
}

#[test]
fn the_policy_allows_this_script_and_this_style_and_no_connection() {
    let page = html(&Report::default(), Use::File);
    let policy = page.split("Content-Security-Policy\" content=\"").nth(1).unwrap();
    let policy = policy.split('"').next().unwrap();
    assert!(policy.starts_with("default-src 'none'; "), "{policy}");
    for (text, directive) in [(SCRIPT, "script-src"), (STYLE, "style-src")] {
        assert!(policy.contains(&format!("{directive} '{}'", hash(text))), "{policy}");
        assert!(page.contains(text));
    }
    assert!(!policy.contains("connect-src") && !policy.contains("unsafe"), "{policy}");
    assert!(html(&Report::default(), Use::Live).contains(" connect-src 'self';"));
}

#[test]
fn nothing_is_loaded_and_the_script_never_parses_markup() {
    for part in ["http:", "https:", "src=", "url(", "@import"] {
        let elsewhere = SCRIPT.replace("http://www.w3.org/2000/svg", "");
        assert!(!STYLE.contains(part) && !elsewhere.contains(part), "{part}");
    }
    for part in [
        "innerHTML",
        "outerHTML",
        "insertAdjacentHTML",
        "document.write",
        "eval(",
        "new Function",
        "DOMParser",
    ] {
        assert!(!SCRIPT.contains(part), "{part}");
    }
    // Otherwise they would end their element.
    assert!(!SCRIPT.contains("</") && !STYLE.contains("</"));
}

#[test]
fn an_empty_cluster_is_told_in_words() {
    let page = html(&Report::default(), Use::File);
    assert!(page.contains("No Service is exposed.") && !page.contains("id=\"drawing\""));
}
