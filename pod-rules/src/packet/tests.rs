use super::*;

#[test]
fn a_packet_is_read_and_printed() {
    for (text, printed) in [
        ("tcp 203.0.113.5 -> :8080", "tcp 203.0.113.5 -> :8080"),
        ("udp 2001:db8::1->[fd01::2]:53", "udp 2001:db8::1 -> [fd01::2]:53"),
        ("tcp uid 1000 -> 198.51.100.7:443", "tcp uid 1000 gid 0 -> 198.51.100.7:443"),
        ("tcp -> 198.51.100.7:443", "tcp uid 0 gid 0 -> 198.51.100.7:443"),
        ("tcp 127.0.0.6 uid 1 gid 2 mark 0x539 -> :80", "tcp 127.0.0.6 uid 1 gid 2 mark 0x539 -> :80"),
    ] {
        assert_eq!(text.parse::<Packet>().unwrap().to_string(), printed);
    }
}

#[test]
fn an_error_names_the_part_that_is_wrong() {
    for (text, part) in [
        ("tcp 203.0.113.5 :8080", "tcp 203.0.113.5 :8080"),
        ("icmp 203.0.113.5 -> :8080", "icmp"),
        ("tcp web -> :8080", "web"),
        ("tcp uid root -> :8080", "root"),
        ("tcp 203.0.113.5 -> 10.0.0.1", "10.0.0.1"),
        ("tcp 203.0.113.5 -> :web", "web"),
        ("tcp 203.0.113.5 -> pod:80", "pod"),
        ("tcp 203.0.113.5 -> [fd01::2]:80", "tcp 203.0.113.5 -> [fd01::2]:80"),
    ] {
        assert_eq!(text.parse::<Packet>().unwrap_err().part, part, "{text}");
    }
}
