use super::{Home, HomeError, Registry, RegistryError};

#[test]
fn a_registry_is_a_host_and_a_path() {
    for text in [
        Registry::IN_MANIFESTS,
        "localhost",
        "registry.example.com",
        "registry.example.com/team/isp",
        "registry:5000/isp",
        "10.0.0.1:5000/a_b/c-d.e",
        "docker.io/isp",
    ] {
        assert_eq!(text.parse::<Registry>().unwrap().as_str(), text);
    }
}

#[test]
fn what_is_no_registry_is_refused_with_the_way_to_write_it() {
    for (text, expected) in [
        ("", "is empty; name a host and a path, such as registry.example.com/isp"),
        ("https://ghcr.io/isp/", "image names have no scheme; use ghcr.io/isp"),
        ("ghcr.io/isp//", "ends with a slash; use ghcr.io/isp"),
        ("ghcr.io/isp:1.0", "has a tag, but the version is the tag of every image; use ghcr.io/isp"),
        ("isp", "does not begin with a host; use docker.io/isp, or a host with a dot or a port"),
        ("isp/team", "does not begin with a host; use docker.io/isp/team, or a host with a dot or a port"),
    ] {
        assert_eq!(text.parse::<Registry>().unwrap_err().to_string(), expected, "{text}");
    }
    for (text, part) in [
        ("ghcr.io/Isp", "Isp"),
        ("ghcr.io//isp", ""),
        ("ghcr.io/a b", "a b"),
        ("ghcr.io/-a", "-a"),
        ("ghcr.io:port/a", "port"),
        ("ghcr.io:99999/a", "99999"),
    ] {
        let part = part.to_owned();
        assert_eq!(text.parse::<Registry>().unwrap_err(), RegistryError::Part { part }, "{text}");
    }
}

#[test]
fn the_registry_of_the_manifests_is_replaced_in_every_place() {
    let registry: Registry = "r.example/isp".parse().unwrap();
    let text =
        "image: localhost/ingress-source-preserve/operator:1\nvalue: localhost/ingress-source-preserve/x\n";
    assert_eq!(registry.replace_in(text), "image: r.example/isp/operator:1\nvalue: r.example/isp/x\n");
}

#[test]
fn a_home_is_an_https_url() {
    let home: Home = Home::IN_CARGO.parse().unwrap();
    assert_eq!(home.download("1.2.3", "a.tgz"), format!("{}/releases/download/v1.2.3/a.tgz", Home::IN_CARGO));
    for text in ["", "github.com/a/b", "http://github.com/a", "https://", "https://a b"] {
        assert_eq!(text.parse::<Home>().unwrap_err(), HomeError::NotHttps, "{text}");
    }
    assert_eq!(
        "https://a.example/b/".parse::<Home>().unwrap_err().to_string(),
        "ends with a slash; use https://a.example/b"
    );
}
