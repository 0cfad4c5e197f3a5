use super::*;

#[test]
fn a_destination_has_a_scheme_an_address_and_http_a_path() {
    for good in ["tcp://10.0.0.1:80", "udp://[fd00::1]:53", "connect://a.b:443", "http://10.0.0.1:80/x?y=1"] {
        good.parse::<Destination>().unwrap();
    }
    for bad in
        ["10.0.0.1:80", "tcp://10.0.0.1", "tcp://10.0.0.1:80/x", "ftp://10.0.0.1:21", "http://fd00::1:80"]
    {
        let error = bad.parse::<Destination>().unwrap_err().to_string();
        assert!(error.contains(bad) && error.contains("connect://HOST:PORT"), "{error}");
    }
}
