use super::*;

#[test]
fn sources_and_destinations_are_written_as_they_are_read() {
    for text in ["pod/web/frontend-1", "node/work-1", "203.0.113.5", "2001:db8::5"] {
        assert_eq!(text.parse::<SourceArg>().unwrap().to_string(), text);
    }
    for text in [
        "svc/web/frontend",
        "svc/web/frontend:443",
        "node/work-1:30080",
        "192.0.2.10:443",
        "[2001:db8::10]:443",
    ] {
        assert_eq!(text.parse::<Destination>().unwrap().to_string(), text);
    }
}

#[test]
fn other_words_are_refused_with_the_right_ones() {
    for text in [
        "",
        "pod/frontend-1",
        "pod//x",
        "node/",
        "frontend",
        "svc/web/frontend",
        "203.0.113.5:80",
        "pod/a/b/c",
        "pod/a/\u{1b}",
    ] {
        assert!(text.parse::<SourceArg>().unwrap_err().contains("pod/NAMESPACE/NAME"), "{text}");
    }
    for text in [
        "",
        "svc/frontend",
        "svc/web/frontend:0",
        "svc/web/frontend:http",
        "node/work-1",
        "192.0.2.10",
        "192.0.2.10:0",
        "2001:db8::10:99999",
        "svc/web/:80",
    ] {
        assert!(text.parse::<Destination>().unwrap_err().contains("ADDRESS:PORT"), "{text}");
    }
}
