//! When this replica may change over to a certificate of another authority: after it has wanted that one to be trusted for `overlap`. Pure.
//!
//! In a planned change that is so when the authority begins to sign. Where it was not announced the certificate that is served stays for as
//! long, and with it, in the bundle, its authority. Without a certificate that still holds there is nothing to wait for.

use std::time::Duration;

use k8s_openapi::jiff::Timestamp;
use rustls::pki_types::CertificateDer;

use super::trust::Trust;

#[derive(Debug)]
pub(super) struct Switch {
    overlap: Duration,
    /// Since when this replica has wanted each to be trusted.
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

    /// These are to be trusted from now on, and whoever has signed what is served.
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

    /// From when on a certificate that one of these has signed may be served.
    pub(super) fn opens(&self, now: Timestamp, signers: &Trust) -> Timestamp {
        match &self.served {
            Some(served) if !served.signers.covers(signers) => {
                let since = signers.iter().map(|each| self.since(each).unwrap_or(now)).max();
                (since.unwrap_or(now) + self.overlap).min(served.ends)
            }
            _ => now,
        }
    }

    /// A certificate that one of these has signed is served now, and has this end.
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

    /// One that serves what A has signed, since 0 and until 1000.
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
