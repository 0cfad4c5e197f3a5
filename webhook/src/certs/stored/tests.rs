use std::time::Duration;

use rcgen::KeyPair;

use super::super::make;
use super::*;

fn now() -> Timestamp {
    Timestamp::from_second(1_800_000_000).unwrap()
}

fn authority() -> Authority {
    make::authority(now(), Duration::from_hours(1)).unwrap()
}

fn authorities() -> Authorities {
    Authorities {
        current: Some(authority()),
        next: Some(Dated { what: authority(), since: Some(now()) }),
        previous: Some(Dated { what: authority().certificate, since: Some(now()) }),
    }
}

/// A Secret with CAs, with one of its keys changed.
fn with(key: &str, text: Option<&str>) -> Secret {
    let mut secret = write(Secret::default(), &authorities());
    let data = secret.data.as_mut().unwrap();
    match text {
        Some(text) => data.insert(key.to_owned(), ByteString(text.as_bytes().to_vec())),
        None => data.remove(key),
    };
    secret
}

#[test]
fn authorities_survive_being_written_and_read() {
    for authorities in [
        authorities(),
        Authorities { next: None, ..authorities() },
        Authorities { previous: None, ..authorities() },
        Authorities::default(),
    ] {
        // Overwrites existing data.
        let secret = write(with("note", Some("of somebody else's")), &authorities);
        assert_eq!(secret.data.as_ref().unwrap()["note"].0, b"of somebody else's");
        assert_eq!(read(&secret), Ok(Found { authorities, unusable: Vec::new() }));
    }
    assert_eq!(read(&Secret::default()), Ok(Found::default()));
}

#[test]
fn what_is_of_no_use_is_told_by_its_key() {
    let other = KeyPair::generate().unwrap();
    let leaf = rcgen::CertificateParams::default().self_signed(&other).unwrap();
    let another = authority();
    let Key(another_key) = &another.key;
    for (key, text, place, expected) in [
        ("ca.crt", Some("garbage"), "ca.crt", Unusable::Certificate),
        (
            "ca.crt",
            Some("-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n"),
            "ca.crt",
            Unusable::Certificate,
        ),
        ("ca.crt", Some(&leaf.pem()), "ca.crt", Unusable::NoAuthority),
        ("ca.crt", None, "ca.crt", Unusable::Half),
        ("ca.key", None, "ca.crt", Unusable::Half),
        ("ca.key", Some("garbage"), "ca.crt", Unusable::Key),
        ("ca.key", Some(another_key), "ca.crt", Unusable::OtherKey),
        ("next.key", Some(""), "next.crt", Unusable::Key),
        ("previous.crt", Some(""), "previous.crt", Unusable::Certificate),
    ] {
        let found = read(&with(key, text)).unwrap();
        assert_eq!(found.unusable, [(place, expected)], "{key}");
        let Authorities { current, next, previous } = found.authorities;
        assert_eq!(
            (current.is_some(), next.is_some(), previous.is_some()),
            (place != "ca.crt", place != "next.crt", place != "previous.crt"),
            "{key}"
        );
    }
}

#[test]
fn times_that_cannot_be_read_are_unknown() {
    let mut secret = with("note", None);
    let annotations = secret.metadata.annotations.as_mut().unwrap();
    annotations.insert(NEXT_SINCE_ANNOTATION.to_owned(), "yesterday".to_owned());
    annotations.remove(SIGNS_SINCE_ANNOTATION);
    let found = read(&secret).unwrap().authorities;
    assert_eq!(found.next.unwrap().since, None);
    assert_eq!(found.previous.unwrap().since, None);
}

#[test]
fn a_secret_of_cert_managers_is_somebody_elses() {
    for key in ["tls.crt", "tls.key"] {
        let error = read(&with(key, Some(""))).unwrap_err();
        assert_eq!(error, Foreign(key));
        assert!(error.to_string().contains("--certificates=secret"), "{error}");
    }
}

#[test]
fn keys_are_not_printed() {
    let authorities = authorities();
    let Key(key) = authorities.current.clone().unwrap().key;
    let line = key.lines().nth(1).unwrap();
    assert!(!format!("{authorities:?}").contains(line));
}
