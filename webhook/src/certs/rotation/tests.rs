use std::convert::Infallible;

use super::super::authority::Key;
use super::super::fixtures::{at, certificate};
use super::super::lifespan::Lifespan;
use super::*;

mod properties;

const LIFETIMES: Lifetimes = Lifetimes {
    authority: Duration::from_mins(15),
    leaf: Duration::from_mins(1),
    overlap: Duration::from_secs(100),
};

/// A CA created at this time.
fn made(name: u8, second: i64) -> Authority {
    Authority {
        certificate: certificate(name),
        key: Key(String::new()),
        lifespan: Lifespan::starting(at(second), LIFETIMES.authority),
    }
}

fn since<T>(what: T, second: i64) -> Dated<T> {
    Dated { what, since: Some(at(second)) }
}

fn take(held: Authorities, step: Step, second: i64, name: u8) -> Authorities {
    held.after(step, at(second), || Ok::<_, Infallible>(made(name, second))).unwrap()
}

#[test]
fn one_authority_follows_another_in_four_steps() {
    let mut held = Authorities::default();
    let mut now = 0;
    let mut steps = Vec::new();
    for name in b'a'..b'j' {
        let (time, step) = due(at(now), &held, &LIFETIMES);
        now = time.as_second() - at(0).as_second();
        held = take(held, step, now, name);
        let trusted: Vec<_> = held.trust().iter().map(|each| each[0] as char).collect();
        steps.push((now, step, String::from_iter(trusted)));
    }
    let expected = [
        (0, Step::Begin, "a"),
        (600, Step::Prepare, "ab"),
        (700, Step::Promote, "ba"),
        (800, Step::Forget, "b"),
        // The second CA was created at 600.
        (1200, Step::Prepare, "be"),
        (1300, Step::Promote, "eb"),
        (1400, Step::Forget, "e"),
        (1800, Step::Prepare, "eh"),
        (1900, Step::Promote, "he"),
    ];
    let expected = expected.map(|(second, step, trusted)| (second, step, trusted.to_owned()));
    assert_eq!(steps, expected);
}

#[test]
fn what_is_found_decides_what_is_next_and_when() {
    let current = Some(made(b'a', 0));
    let only = Authorities { current: current.clone(), ..Authorities::default() };
    let with_next = |next| Authorities { next: Some(next), ..only.clone() };
    let with_previous =
        |since| Authorities { previous: Some(Dated { what: certificate(b'z'), since }), ..only.clone() };
    let lone_next = |next| Authorities { current: None, next: Some(next), previous: None };
    for (what, now, held, time, step) in [
        ("nothing", 0, Authorities::default(), 0, Step::Begin),
        ("a young one", 10, only.clone(), 600, Step::Prepare),
        ("one that should have been followed long ago", 899, only.clone(), 600, Step::Prepare),
        ("one that has ended", 900, only.clone(), 900, Step::Begin),
        ("one that begins in the future", -3601, only.clone(), -3601, Step::Begin),
        ("one made by a clock that is ahead, but not by much", -3000, only.clone(), 600, Step::Prepare),
        ("a next one", 610, with_next(since(made(b'b', 600), 600)), 700, Step::Promote),
        (
            "a next one when the current has ended",
            950,
            with_next(since(made(b'b', 899), 899)),
            950,
            Step::Promote,
        ),
        ("a next one alone", 10, lone_next(since(made(b'b', 0), 0)), 10, Step::Promote),
        ("a next one that has ended", 100, with_next(since(made(b'b', -900), 50)), 600, Step::Prepare),
        ("both ended", 5000, with_next(since(made(b'b', 600), 600)), 5000, Step::Begin),
        (
            "a next one without a time",
            610,
            with_next(Dated { what: made(b'b', 600), since: None }),
            610,
            Step::Date,
        ),
        ("a next one from far ahead", 610, with_next(since(made(b'b', 600), 9000)), 610, Step::Date),
        ("a previous one", 10, with_previous(Some(at(5))), 105, Step::Forget),
        ("a previous one without a time", 10, with_previous(None), 10, Step::Date),
    ] {
        assert_eq!(due(at(now), &held, &LIFETIMES), (at(time), step), "{what}");
    }
}

#[test]
fn what_is_over_goes_before_there_is_a_new_one() {
    let held = Authorities {
        current: Some(made(b'b', 0)),
        next: Some(since(made(b'c', 600), 600)),
        previous: Some(since(certificate(b'a'), 600)),
    };
    assert_eq!(due(at(5), &held, &LIFETIMES), (at(700), Step::Forget));
    let held = take(held, Step::Forget, 700, b'x');
    assert_eq!(due(at(5), &held, &LIFETIMES), (at(700), Step::Promote));
}

#[test]
fn dates_that_make_sense_are_left_alone() {
    let held = Authorities {
        current: Some(made(b'b', 0)),
        next: Some(Dated { what: made(b'c', 600), since: None }),
        previous: Some(since(certificate(b'a'), 590)),
    };
    let held = take(held, Step::Date, 610, b'x');
    assert_eq!(held.next.unwrap().since, Some(at(610)));
    assert_eq!(held.previous.unwrap().since, Some(at(590)));
}

#[test]
fn an_authority_that_is_replaced_stays_trusted() {
    let held = Authorities { current: Some(made(b'a', 0)), ..Authorities::default() };
    let held = take(held, Step::Begin, 900, b'b');
    assert_eq!(held.current.as_ref().unwrap().certificate, certificate(b'b'));
    assert!(held.trust().contains(&certificate(b'a')));
}

#[test]
fn lifetimes_have_to_fit_together() {
    let [second, day] = [Duration::from_secs(1), Duration::from_hours(24)];
    assert!(Lifetimes::new(365 * day, 7 * day, 300 * second).is_ok());
    assert!(Lifetimes::new(18 * second, 4 * second, 3 * second).is_ok());
    for (authority, leaf, overlap, text) in [
        (day, second * 60, day / 5, "--overlap 17280s is more than a sixth of --ca-lifetime 86400s"),
        (day, second * 60, day / 5, "at most 14400s, or a CA lifetime of at least 103680s"),
        (day, 2 * day, second, "--leaf-lifetime 172800s is longer than --ca-lifetime 86400s"),
        (day, 2 * second, second, "choose at least 3s"),
        (day, second * 60, Duration::ZERO, "--overlap 0s"),
        (day, second * 60, second / 2, "--overlap 0.5s"),
    ] {
        let error = Lifetimes::new(authority, leaf, overlap).unwrap_err().to_string();
        assert!(error.contains(text), "{error}");
    }
}
