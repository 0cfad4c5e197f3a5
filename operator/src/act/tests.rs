use kube::core::Status;

use super::Outcome::{Gone, Refused, ServerError, Stale, Throttled};
use super::*;

#[test]
fn every_answer_of_the_api_server_has_a_meaning() {
    let answered = |code: u16| {
        let status = Status::failure("no", "Reason").with_code(code);
        classify(&kube::Error::Api(Box::new(status))).outcome
    };
    let meanings = [409, 404, 429, 500, 503, 504, 400, 401, 403, 422].map(answered);
    assert_eq!(
        meanings,
        [Stale, Gone, Throttled, ServerError, ServerError, ServerError, Refused, Refused, Refused, Refused]
    );
}

#[test]
fn no_answer_is_no_refusal() {
    let refused = std::io::Error::new(std::io::ErrorKind::ConnectionRefused, "connection refused");
    assert_eq!(classify(&kube::Error::Service(Box::new(refused))).outcome, Outcome::Unreachable);
}
