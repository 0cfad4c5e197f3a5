//! Fixtures for certificate tests: times, and certificates named by a letter.

use k8s_openapi::jiff::Timestamp;
use rustls::pki_types::CertificateDer;

use super::Trust;

/// A point in time, in seconds since the start of the test.
pub(crate) fn at(second: i64) -> Timestamp {
    Timestamp::from_second(1_800_000_000 + second).unwrap()
}

pub(crate) fn certificate(name: u8) -> CertificateDer<'static> {
    CertificateDer::from(vec![name])
}

pub(crate) fn trust(names: &[u8]) -> Trust {
    names.iter().map(|name| certificate(*name)).collect()
}
