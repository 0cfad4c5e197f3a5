use std::time::Duration;

use k8s_openapi::ByteString;

use super::super::authority::Authority;
use super::super::make;
use super::*;

const SERVER: &str = "webhook.system.svc";

fn authority(now: Timestamp) -> Authority {
    make::authority(now, Duration::from_hours(10)).unwrap()
}

/// A Secret as written by cert-manager.
fn secret(now: Timestamp, server: &str, signer: &Authority, told: &Authority) -> Secret {
    let key = rcgen::KeyPair::generate().unwrap();
    let issuer = rcgen::KeyPair::from_pem(&signer.key.0).unwrap();
    let issuer = rcgen::Issuer::from_ca_cert_der(&signer.certificate, issuer).unwrap();
    let mut params = rcgen::CertificateParams::new(vec![server.to_owned()]).unwrap();
    let second = |second| time::OffsetDateTime::from_unix_timestamp(now.as_second() + second).unwrap();
    (params.not_before, params.not_after) = (second(-60), second(3600));
    let certificate = params.signed_by(&key, &issuer).unwrap().pem();
    let told = Trust::from_iter([told.certificate.clone()]).pem();
    let data = [("tls.crt", certificate), ("tls.key", key.serialize_pem()), ("ca.crt", told)];
    let data = data.map(|(key, text)| (key.to_owned(), ByteString(text.into_bytes())));
    Secret { data: Some(data.into()), ..Secret::default() }
}

#[test]
fn a_certificate_that_fits_is_taken_and_any_other_is_refused_with_the_reason() {
    let now = Timestamp::now();
    let (one, other) = (authority(now), authority(now));
    let leaf = read(Some(&secret(now, SERVER, &one, &one)), SERVER, now).unwrap();
    assert_eq!(leaf.signers, Trust::from_iter([one.certificate.clone()]));
    assert_eq!(leaf.lifespan.ends.as_second(), now.as_second() + 3600);

    let without = |key| {
        let mut secret = secret(now, SERVER, &one, &one);
        secret.data.as_mut().unwrap().remove(key);
        Some(secret)
    };
    let mut other_key = secret(now, SERVER, &one, &one);
    let key = ByteString(other.key.0.clone().into_bytes());
    other_key.data.as_mut().unwrap().insert("tls.key".to_owned(), key);
    let later = now + Duration::from_hours(2);
    for (secret, now, text) in [
        (None, now, "has cert-manager created it"),
        (without("tls.crt"), now, "no readable tls.crt"),
        (without("tls.key"), now, "no readable tls.key"),
        (without("ca.crt"), now, "no readable ca.crt"),
        (Some(other_key), now, "do not match"),
        (Some(secret(now, SERVER, &one, &other)), now, "UnknownIssuer"),
        (Some(secret(now, "other.system.svc", &one, &one)), now, "for webhook.system.svc"),
        (Some(secret(now, SERVER, &one, &one)), later, "expired"),
    ] {
        let error = read(secret.as_ref(), SERVER, now).unwrap_err().to_string();
        assert!(error.contains(text), "{text}: {error}");
    }
}
