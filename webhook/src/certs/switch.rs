//! When this replica may switch to a certificate of another CA: once it has requested trust in that
//! CA for `overlap`. Pure.
//!
//! In a planned rotation this is already the case when the CA starts to sign. For an unannounced
//! CA, the replica keeps serving the current certificate for that time and keeps its CA in the
//! bundle. Without a valid certificate there is nothing to wait for.

use std::time::Duration;

use k8s_openapi::jiff::Timestamp;
use rustls::pki_types::CertificateDer;

use super::trust::Trust;

#[derive(Debug)]
pub(super) struct Switch {
    overlap: Duration,
    /// The CAs that this replica wants trusted, and since when.
    trusted: Vec<(CertificateDer<'static>, Timestamp)>,
    served: Option<Served>,
}

#[derive(Debug)]
struct Served {
    signers: Trust,
    ends: Timestamp,
}

impl Switch {
    pub(super) fn new(overlap: Duration) -> Self {
        Self { overlap, trusted: Vec::new(), served: None }
    }

    /// Sets the CAs to trust, in addition to those that signed the current certificate.
    pub(super) fn trust(&mut self, now: Timestamp, trust: &Trust) {
        let all = match &self.served {
            Some(served) => trust.with(&served.signers),
            None => trust.clone(),
        };
        self.trusted = all.iter().map(|each| (each.clone(), self.since(each).unwrap_or(now))).collect();
    }

    pub(super) fn trusted(&self) -> Trust {
        self.trusted.iter().map(|(each, _)| each.clone()).collect()
    }

    /// When a certificate signed by these CAs may first be served.
    pub(super) fn opens(&self, now: Timestamp, signers: &Trust) -> Timestamp {
        match &self.served {
            Some(served) if !served.signers.covers(signers) => {
                let since = signers.iter().map(|each| self.since(each).unwrap_or(now)).max();
                (since.unwrap_or(now) + self.overlap).min(served.ends)
            }
            _ => now,
        }
    }

    /// Records the certificate now served: its CAs and its expiry.
    pub(super) fn serve(&mut self, signers: Trust, ends: Timestamp) {
        self.served = Some(Served { signers, ends });
    }

    fn since(&self, certificate: &CertificateDer<'_>) -> Option<Timestamp> {
        self.trusted.iter().find(|(each, _)| each == certificate).map(|(_, since)| *since)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::certs::fixtures::{at, trust};

    /// A switch that serves a certificate of A, valid from 0 to 1000.
    fn switch() -> Switch {
        let mut switch = Switch::new(Duration::from_secs(100));
        switch.trust(at(0), &trust(b"a"));
        assert_eq!(switch.opens(at(0), &trust(b"a")), at(0), "there is nothing to lose");
        switch.serve(trust(b"a"), at(1000));
        switch
    }

    #[test]
    fn an_authority_that_was_announced_is_taken_at_once() {
        let mut switch = switch();
        switch.trust(at(500), &trust(b"ab"));
        assert_eq!(switch.opens(at(550), &trust(b"b")), at(600));
        switch.trust(at(600), &trust(b"ba"));
        assert_eq!(switch.opens(at(600), &trust(b"b")), at(600));
    }

    #[test]
    fn one_that_was_not_waits_while_the_other_stays_trusted() {
        let mut switch = switch();
        switch.trust(at(500), &trust(b"b"));
        assert_eq!(switch.opens(at(500), &trust(b"b")), at(600));
        assert_eq!(switch.trusted(), trust(b"ab"));
        switch.serve(trust(b"b"), at(2000));
        switch.trust(at(600), &trust(b"b"));
        assert_eq!(switch.trusted(), trust(b"b"));
    }

    #[test]
    fn nothing_waits_for_a_certificate_that_has_ended() {
        let mut switch = switch();
        switch.trust(at(950), &trust(b"b"));
        assert_eq!(switch.opens(at(950), &trust(b"b")), at(1000));
    }

    #[test]
    fn a_renewal_by_the_same_authority_does_not_wait() {
        let switch = switch();
        assert_eq!(switch.opens(at(1), &trust(b"a")), at(1));
    }
}
