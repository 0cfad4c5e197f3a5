//! How a program ends, depending on its tasks. Uses real, short times.

use std::{future::pending, time::Instant};

use super::*;

const LONG: Duration = Duration::from_mins(1);
const SHORT: Duration = Duration::from_millis(50);

fn program() -> (Shutdown, Tasks) {
    let shutdown = Shutdown::default();
    (shutdown.clone(), Tasks::new(shutdown))
}

fn obedient(shutdown: &Shutdown) -> impl Future<Output = ()> + Send + 'static {
    let shutdown = shutdown.clone();
    async move { shutdown.requested().await }
}

#[tokio::test]
async fn tasks_that_end_when_told_end_well_and_without_waiting() {
    let (shutdown, mut tasks) = program();
    tasks.spawn("one", obedient(&shutdown));
    tasks.spawn("two", obedient(&shutdown));
    let started = Instant::now();
    let finished = tokio::spawn(tasks.finish(LONG));
    tokio::time::sleep(SHORT).await;
    assert!(!finished.is_finished());
    shutdown.request();
    finished.await.unwrap().unwrap();
    assert!(started.elapsed() < LONG);
}

#[tokio::test]
async fn a_program_without_tasks_waits_for_its_end() {
    let (shutdown, tasks) = program();
    let finished = tokio::spawn(tasks.finish(SHORT));
    tokio::time::sleep(SHORT).await;
    assert!(!finished.is_finished());
    shutdown.request();
    finished.await.unwrap().unwrap();
}

#[tokio::test]
async fn a_task_that_does_not_end_is_cut_off_and_named() {
    let (shutdown, mut tasks) = program();
    tasks.spawn("obedient", obedient(&shutdown));
    tasks.spawn("stubborn", pending());
    tasks.spawn("deaf", pending());
    shutdown.request();
    let error = tasks.finish(SHORT).await.unwrap_err();
    assert!(matches!(&error, TasksError::StillRunning { tasks, .. } if tasks == &["deaf", "stubborn"]));
    assert!(error.to_string().starts_with("tasks still running 50ms after"), "{error}");
}

#[tokio::test]
async fn a_task_that_ends_early_ends_the_others() {
    let (shutdown, mut tasks) = program();
    tasks.spawn("obedient", obedient(&shutdown));
    tasks.spawn("done", async {});
    let error = tasks.finish(LONG).await.unwrap_err();
    assert!(matches!(error, TasksError::EndedEarly { task: "done" }), "{error}");
    assert!(shutdown.is_requested());
}

#[tokio::test]
async fn a_panic_ends_the_program_and_says_where_and_why() {
    let (shutdown, mut tasks) = program();
    tasks.spawn("obedient", obedient(&shutdown));
    tasks.spawn("broken", async { panic!("on purpose") });
    let error = tasks.finish(LONG).await.unwrap_err().to_string();
    assert!(error.contains("task broken failed") && error.contains("on purpose"), "{error}");
}

#[tokio::test]
async fn a_panic_after_the_end_was_asked_for_is_a_failure_too() {
    let (shutdown, mut tasks) = program();
    let told = obedient(&shutdown);
    tasks.spawn("broken", async {
        told.await;
        panic!("on purpose");
    });
    tasks.spawn("stubborn", pending());
    shutdown.request();
    let error = tasks.finish(SHORT).await.unwrap_err();
    assert!(matches!(error, TasksError::Panicked { task: "broken", .. }), "{error}");
}
