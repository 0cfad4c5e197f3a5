//! API errors and connection errors as one readable line.

use kube::core::Status;
use kube::runtime::watcher;

/// The API server's message, or the cause of the connection error.
pub fn plain(error: &kube::Error) -> String {
    match error {
        kube::Error::Api(status) => answer(status),
        other => chain(other),
    }
}

/// The same for a watch.
pub fn plain_watch(error: &watcher::Error) -> String {
    match error {
        watcher::Error::InitialListFailed(error)
        | watcher::Error::WatchStartFailed(error)
        | watcher::Error::WatchFailed(error) => plain(error),
        watcher::Error::WatchError(status) => answer(status),
        watcher::Error::NoResourceVersion => error.to_string(),
    }
}

fn answer(status: &Status) -> String {
    format!("{} ({})", status.message, status.code)
}

/// An error with its causes, since connection errors state the reason only there.
pub fn chain(error: &dyn std::error::Error) -> String {
    let causes = std::iter::successors(error.source(), |cause| cause.source());
    let mut text = error.to_string();
    for cause in causes.map(ToString::to_string) {
        if !text.contains(&cause) {
            text = format!("{text}: {cause}");
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_the_api_server_said_is_told_in_its_words() {
        let status = Status::failure("services is forbidden", "Forbidden").with_code(403);
        let error = || kube::Error::Api(Box::new(status.clone()));
        assert_eq!(plain(&error()), "services is forbidden (403)");
        assert_eq!(plain_watch(&watcher::Error::WatchStartFailed(error())), "services is forbidden (403)");
    }

    #[test]
    fn what_broke_the_connection_is_told() {
        let refused = std::io::Error::new(std::io::ErrorKind::ConnectionRefused, "connection refused");
        let text = plain(&kube::Error::Service(Box::new(refused)));
        assert!(text.contains("connection refused"), "{text}");
    }
}
