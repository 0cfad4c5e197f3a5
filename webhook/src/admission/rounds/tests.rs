use std::sync::Mutex;

use futures_util::future::join_all;

use super::*;

const LIMITS: Limits =
    Limits { patience: Duration::from_millis(1500), names: 4, rest: Duration::from_millis(250) };
/// The duration of a read.
const TAKES: Duration = Duration::from_millis(20);

/// The names that were read, and when, relative to the start.
type Log = Arc<Mutex<Vec<(Duration, BTreeSet<String>)>>>;

/// Rounds whose reads take this long and return the names that they read.
fn start(takes: Duration) -> (Rounds<BTreeSet<String>>, Log) {
    let (rounds, reader) = rounds(LIMITS);
    let log = Log::default();
    let began = tokio::time::Instant::now();
    let written = log.clone();
    tokio::spawn(reader.run(move |names: BTreeSet<String>| {
        written.lock().unwrap().push((began.elapsed(), names.clone()));
        async move {
            sleep(takes).await;
            Ok(names)
        }
    }));
    (rounds, log)
}

fn names(text: &str) -> BTreeSet<String> {
    text.split_whitespace().map(str::to_owned).collect()
}

#[tokio::test(start_paused = true)]
async fn reviews_that_come_together_share_a_round_and_the_next_comes_after_a_rest() {
    let (rounds, log) = start(TAKES);
    // The first review starts a round at once. Those that arrive meanwhile wait for the next round.
    let first = rounds.read(names("a"));
    let others = async {
        sleep(TAKES / 2).await;
        join_all((0..50).map(|_| rounds.read(names("a")))).await
    };
    let (first, others) = tokio::join!(first, others);
    assert_eq!(*first.unwrap(), names("a"));
    assert!(others.iter().all(|answer| answer.as_ref().is_ok_and(|read| **read == names("a"))));
    let log = log.lock().unwrap();
    assert_eq!(log.len(), 2, "{log:?}");
    assert!(log[1].0 >= log[0].0 + TAKES + LIMITS.rest, "{log:?}");
}

#[tokio::test(start_paused = true)]
async fn a_flood_of_ten_seconds_costs_a_few_rounds_a_second() {
    let (rounds, log) = start(TAKES);
    let caller = async || {
        let began = tokio::time::Instant::now();
        while began.elapsed() < Duration::from_secs(10) {
            rounds.read(names("a b")).await.unwrap();
        }
    };
    join_all((0..20).map(|_| caller())).await;
    let count = log.lock().unwrap().len();
    assert!((30..=41).contains(&count), "{count} rounds");
}

#[tokio::test(start_paused = true)]
async fn a_round_has_room_for_so_many_names_and_the_rest_wait_for_the_next() {
    let (rounds, log) = start(TAKES);
    let asked = ["a b", "b c", "d e", "f"].map(|text| rounds.read(names(text)));
    for answer in join_all(asked).await {
        answer.unwrap();
    }
    let read: Vec<_> = log.lock().unwrap().iter().map(|(_, names)| names.clone()).collect();
    assert_eq!(read, [names("a b c"), names("d e f")]);
    let refused = rounds.read(names("a b c d e")).await.unwrap_err();
    assert_eq!(refused, Unread::TooMany { count: 5, most: 4 });
    assert_eq!(log.lock().unwrap().len(), 2, "nothing was read for it");
}

#[tokio::test(start_paused = true)]
async fn when_too_many_wait_the_next_is_told_so_at_once() {
    let (rounds, _) = start(TAKES);
    let answers = join_all((0..=QUEUE).map(|_| rounds.read(names("a")))).await;
    let crowded = answers.iter().filter(|answer| **answer == Err(Unread::Crowded)).count();
    assert_eq!(crowded, 1);
}

#[tokio::test(start_paused = true)]
async fn an_api_server_that_does_not_answer_keeps_no_review_waiting_and_is_asked_less_often() {
    let (rounds, log) = start(Duration::from_mins(1));
    let began = tokio::time::Instant::now();
    while began.elapsed() < Duration::from_secs(30) {
        let asked = tokio::time::Instant::now();
        assert_eq!(rounds.read(names("a")).await, Err(Unread::Late(LIMITS.patience)));
        assert!(asked.elapsed() <= LIMITS.patience);
    }
    let count = log.lock().unwrap().len();
    assert!((5..=10).contains(&count), "{count} rounds");
}

#[tokio::test(start_paused = true)]
async fn nothing_is_read_for_reviews_that_have_given_up() {
    let (rounds, log) = start(TAKES);
    rounds.read(names("a")).await.unwrap();
    assert!(timeout(Duration::from_millis(10), rounds.read(names("b"))).await.is_err());
    sleep(Duration::from_secs(5)).await;
    assert_eq!(log.lock().unwrap().len(), 1);
}

#[test]
fn the_rest_grows_with_the_round_within_limits() {
    let rest = Duration::from_millis(256);
    for (names, took, rests) in
        [(0, 0, 256), (16, 50, 256), (2, 200, 600), (64, 200, 1024), (64, 1500, 2048), (usize::MAX, 0, 2048)]
    {
        assert_eq!(pause(rest, names, Duration::from_millis(took)), Duration::from_millis(rests));
    }
}
