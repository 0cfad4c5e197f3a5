use super::*;

#[test]
fn a_wave_is_a_count_or_a_part_of_the_pool_and_never_empty() {
    let table = [
        (MaxUnavailable::Count(3), 100, 3),
        (MaxUnavailable::Count(3), 0, 3),
        (MaxUnavailable::Percent(10), 100, 10),
        (MaxUnavailable::Percent(10), 101, 11),
        (MaxUnavailable::Percent(10), 3, 1),
        (MaxUnavailable::Percent(1), 0, 1),
        (MaxUnavailable::Percent(100), 7, 7),
    ];
    for (max_unavailable, nodes, expected) in table {
        assert_eq!(max_unavailable.of(nodes), expected, "{max_unavailable} of {nodes}");
    }
}

#[test]
fn it_is_written_as_it_was_read() {
    for (json, expected) in [
        ("1", MaxUnavailable::Count(1)),
        ("65535", MaxUnavailable::Count(65535)),
        ("\"1%\"", MaxUnavailable::Percent(1)),
        ("\"100%\"", MaxUnavailable::Percent(100)),
    ] {
        let value: MaxUnavailable = serde_json::from_str(json).unwrap();
        assert_eq!(value, expected);
        assert_eq!(serde_json::to_string(&value).unwrap(), json);
    }
}

#[test]
fn what_would_change_no_node_is_refused() {
    for json in ["0", "-1", "65536", "\"0%\"", "\"101%\"", "\"5\"", "\"ten%\"", "\"\""] {
        let error = serde_json::from_str::<MaxUnavailable>(json).unwrap_err().to_string();
        assert!(error.contains(&format!("maxUnavailable {json} is neither")), "{json}: {error}");
    }
}
