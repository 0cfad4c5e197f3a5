use std::panic::AssertUnwindSafe;

use futures_util::FutureExt;

use super::*;

const SHORT: Patience = Patience { limit: Duration::from_millis(50), pause: Duration::from_millis(1) };

/// The message with which a wait gives up.
async fn failure<L: Look>(look: impl AsyncFnMut() -> L) -> String {
    let ended = AssertUnwindSafe(SHORT.until("it is there", look)).catch_unwind().await;
    *ended.err().unwrap().downcast::<String>().unwrap()
}

#[tokio::test]
async fn what_is_found_is_returned() {
    let mut looks = 0;
    let found = SHORT.until("the third look", async || {
        looks += 1;
        if looks == 3 { Ok(looks) } else { Err(looks) }
    });
    assert_eq!(found.await, 3);
    assert_eq!(SHORT.until("something", async || Some("it")).await, "it");
    SHORT.until("a condition", async || true).await;
}

#[tokio::test]
async fn a_failure_says_what_was_awaited_and_what_was_seen_last() {
    let seen = failure(async || Err::<(), _>(("phase", "Progressing"))).await;
    assert_eq!(seen, r#"it is there: not within 50ms; last seen: ("phase", "Progressing")"#);
    assert!(failure(async || false).await.ends_with("last seen: it is not so"));
    assert!(failure(async || None::<()>).await.ends_with("last seen: nothing"));
}

#[tokio::test(start_paused = true)]
async fn a_look_that_never_ends_is_a_failure() {
    let message = failure(async || std::future::pending::<bool>().await).await;
    assert_eq!(message, "it is there: a look did not end within 50ms");
}
