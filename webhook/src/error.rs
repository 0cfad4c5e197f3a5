//! Errors of the API server and of the way there, as a line to read.

use kube::core::Status;
use kube::runtime::watcher;

/// What the API server answered, or what broke the connection.
pub(crate) fn plain(error: &kube::Error) -> String {
    match error {
        kube::Error::Api(status) => answer(status),
        other => chain(other),
    }
}

/// The same for a watch.
pub(crate) fn plain_watch(error: &watcher::Error) -> String {
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

/// An error with its causes: those of a connection are told nowhere else.
fn chain(error: &dyn std::error::Error) -> String {
    let causes = std::iter::successors(error.source(), |cause| cause.source());
    let mut text = error.to_string();
    for cause in causes.map(ToString::to_string) {
        if !text.contains(&cause) {
            text = format!("{text}: {cause}");
        }
    }
    text
}
