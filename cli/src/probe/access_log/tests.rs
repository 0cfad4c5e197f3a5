use super::*;

#[test]
fn the_source_is_found_in_the_usual_formats() {
    let marker = "/isp-probe-1-0-2";
    for (line, expected) in [
        (
            r#"[2026-11-18T08:00:00.000Z] "GET /isp-probe-1-0-2 HTTP/1.1" 404 NR route_not_found - "-" 0 0 0 - "10.244.2.5" "-" "a-b-c" "192.0.2.10" "-" - - 10.244.1.7:8080 10.90.0.12:51234 - -"#,
            Some("10.90.0.12"),
        ),
        (
            r#"[2026-11-18T08:00:00.000Z] "GET /isp-probe-1-0-2 HTTP/1.1" 200 - via_upstream - "-" 0 412 3 2 "198.51.100.10" "-" "a-b-c" "192.0.2.10" "10.244.3.4:8080" outbound|80||registry.shop.svc.cluster.local 10.244.1.7:40000 10.244.1.7:8080 [2001:db8::5]:51234 - -"#,
            Some("2001:db8::5"),
        ),
        (
            r#"{"path":"/isp-probe-1-0-2","downstream_remote_address":"198.51.100.10:40000","response_code":404}"#,
            Some("198.51.100.10"),
        ),
        (
            r#"198.51.100.10 - - [18/Nov/2026:08:00:00 +0000] "GET /isp-probe-1-0-2 HTTP/1.1" 404 146"#,
            Some("198.51.100.10"),
        ),
        (
            r#"198.51.100.10:5123 [18/Nov/2026:08:00:00.000] http http/web 0/0/0/1/1 404 200 - - "GET /isp-probe-1-0-2 HTTP/1.1""#,
            Some("198.51.100.10"),
        ),
        (r#"::ffff:198.51.100.10 - - "GET /isp-probe-1-0-2 HTTP/1.1""#, Some("198.51.100.10")),
        ("I1118 web: GET /isp-probe-1-0-2 from somewhere", None),
        (r#"198.51.100.10 - - "GET /isp-probe-1-0-20 HTTP/1.1""#, None),
    ] {
        let found = sources(line, &format!("{marker} "));
        let json = sources(line, &format!("{marker}\""));
        let found: Vec<String> = found.into_iter().chain(json).map(|ip| ip.to_string()).collect();
        assert_eq!(found, expected.into_iter().collect::<Vec<_>>(), "{line}");
    }
}
