//! Why a request failed: a closed set of words for tests to match on, with the details in a
//! separate field.

use std::{error::Error as _, io};

use serde_json::{Map, Value};

/// Displayed as the word that is printed as `error`.
#[derive(Debug, thiserror::Error)]
pub(crate) enum Failure {
    #[error("timed out")]
    TimedOut,
    #[error("refused")]
    Refused(String),
    #[error("reset")]
    Reset(String),
    #[error("unreachable")]
    Unreachable(String),
    /// The connection was closed before the answer was complete.
    #[error("closed")]
    Closed(String),
    #[error("unknown host")]
    UnknownHost(String),
    /// The address given with `--bind` cannot be used.
    #[error("bind failed")]
    Bind(String),
    #[error("status {status}")]
    Status { status: u16, body: String },
    /// There was an answer, but it violates the protocol.
    #[error("bad answer")]
    BadAnswer(String),
    #[error("failed")]
    Other(String),
}

impl Failure {
    /// The line to print, without the fields that all lines have.
    pub(crate) fn into_line(self) -> Map<String, Value> {
        let mut line = Map::from_iter([("error".to_owned(), Value::from(self.to_string()))]);
        let detail = match self {
            Self::TimedOut => return line,
            Self::Status { status, body } => {
                line.insert("status".to_owned(), status.into());
                body
            }
            Self::Refused(detail)
            | Self::Reset(detail)
            | Self::Unreachable(detail)
            | Self::Closed(detail)
            | Self::UnknownHost(detail)
            | Self::Bind(detail)
            | Self::BadAnswer(detail)
            | Self::Other(detail) => detail,
        };
        line.insert("detail".to_owned(), detail.into());
        line
    }
}

impl From<io::Error> for Failure {
    fn from(error: io::Error) -> Self {
        let detail = error.to_string();
        match error.kind() {
            io::ErrorKind::TimedOut => Self::TimedOut,
            io::ErrorKind::ConnectionRefused => Self::Refused(detail),
            io::ErrorKind::ConnectionReset | io::ErrorKind::BrokenPipe => Self::Reset(detail),
            io::ErrorKind::HostUnreachable | io::ErrorKind::NetworkUnreachable => Self::Unreachable(detail),
            io::ErrorKind::UnexpectedEof => Self::Closed(detail),
            _ => Self::Other(detail),
        }
    }
}

impl From<hyper::Error> for Failure {
    fn from(error: hyper::Error) -> Self {
        let cause = error.source().and_then(|source| source.downcast_ref::<io::Error>());
        if let Some(cause) = cause {
            return Self::from(io::Error::new(cause.kind(), error.to_string()));
        }
        let detail = error.to_string();
        if error.is_incomplete_message() || error.is_canceled() || error.is_closed() {
            Self::Closed(detail)
        } else if error.is_parse() {
            Self::BadAnswer(detail)
        } else {
            Self::Other(detail)
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn errors_of_the_kernel_become_known_words() {
        for (kind, word) in [
            (io::ErrorKind::ConnectionRefused, "refused"),
            (io::ErrorKind::ConnectionReset, "reset"),
            (io::ErrorKind::BrokenPipe, "reset"),
            (io::ErrorKind::HostUnreachable, "unreachable"),
            (io::ErrorKind::NetworkUnreachable, "unreachable"),
            (io::ErrorKind::TimedOut, "timed out"),
            (io::ErrorKind::UnexpectedEof, "closed"),
            (io::ErrorKind::OutOfMemory, "failed"),
        ] {
            assert_eq!(Failure::from(io::Error::from(kind)).to_string(), word, "{kind:?}");
        }
    }

    #[test]
    fn a_line_holds_the_word_and_the_detail() {
        assert_eq!(Value::from(Failure::TimedOut.into_line()), json!({"error": "timed out"}));
        assert_eq!(
            Value::from(Failure::Status { status: 503, body: "no healthy upstream".into() }.into_line()),
            json!({"error": "status 503", "status": 503, "detail": "no healthy upstream"})
        );
    }
}
