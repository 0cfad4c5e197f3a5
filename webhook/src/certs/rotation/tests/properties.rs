//! Invariant: every bundle that an API server may still hold verifies every certificate that a
//! replica may still serve.

use proptest::prelude::*;

use super::*;

/// The CAs from a point in time on, in seconds.
struct Stage {
    from: i64,
    held: Authorities,
}

/// The stages that may still be in use: a write older than `overlap` has been seen everywhere.
fn in_use(stages: &[Stage], now: i64, overlap: i64) -> Vec<&Authorities> {
    let ended = |index: usize| stages.get(index + 1).is_some_and(|next| next.from + overlap <= now);
    let begun = stages.iter().enumerate().filter(|(_, stage)| stage.from <= now);
    begun.filter(|(index, _)| !ended(*index)).map(|(_, stage)| &stage.held).collect()
}

/// Every pairing of a replica and an API server at these stages must verify.
fn assert_all_verify(stages: &[&Authorities], now: i64) {
    for serving in stages {
        let signer = serving.current.as_ref().unwrap();
        assert!(signer.lifespan.holds(at(now)), "{now}: a certificate of an authority that has ended");
        for trusting in stages {
            assert!(trusting.trust().contains(&signer.certificate), "{now}: {serving:?} for {trusting:?}");
        }
    }
}

proptest! {
    #[test]
    fn no_replica_is_ever_turned_away(
        overlap in 1i64..200,
        room in 0i64..500,
        late in prop::collection::vec((0.0..1.0f64, 0.0..1.0f64), 1..12),
    ) {
        // The last third of a CA's lifetime has room for two overlaps and for delayed steps.
        let authority = 6 * overlap + 3 * room;
        let seconds = |count: i64| Duration::from_secs(count.unsigned_abs());
        let lifetimes = Lifetimes { authority: seconds(authority), leaf: seconds(3), overlap: seconds(overlap) };
        let make = |name: u8, second| Authority {
            lifespan: Lifespan::starting(at(second), lifetimes.authority),
            ..made(name, second)
        };
        let first = Authorities { current: Some(make(0, 0)), ..Authorities::default() };
        let mut stages = vec![Stage { from: 0, held: first }];
        let mut name = 0;
        for (preparing, promoting) in late {
            // Both steps may be late, but together not by more than `room`.
            #[allow(clippy::cast_possible_truncation, clippy::cast_precision_loss, reason = "small numbers")]
            let part = |of: i64, share: f64| (of as f64 * share) as i64;
            let preparing = part(room, preparing);
            let promoting = part(room - preparing, promoting);
            for delay in [preparing, promoting, preparing] {
                let last = stages.last().unwrap();
                let (time, step) = due(at(last.from), &last.held, &lifetimes);
                let from = time.as_second() - at(0).as_second() + delay;
                name += 1;
                let held = last.held.clone().after(step, at(from), || Ok::<_, Infallible>(make(name, from))).unwrap();
                stages.push(Stage { from, held });
            }
        }
        let ends = stages.iter().flat_map(|stage| [stage.from, stage.from + overlap - 1]);
        for now in ends {
            assert_all_verify(&in_use(&stages, now, overlap), now);
        }
    }
}
