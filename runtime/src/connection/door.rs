//! Admission of connections before anything is known about the caller. Callers cannot exhaust the
//! places, monopolize the CPU, or make other callers wait for long:
//!
//! - Connections are accepted at a bounded rate, in the order of the kernel's queue, so that
//!   handshakes leave time for other work.
//! - When all places are taken, the oldest connection is evicted. A well-behaved caller has
//!   finished by then: each has at least the time in which the places fill up at the full rate.

use std::collections::VecDeque;
use std::io;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::net::{TcpListener, TcpStream};
use tokio::sync::oneshot;
use tokio::time::{Instant, sleep, sleep_until};
use tracing::debug;

use super::PAUSE;

/// Limits on the number and the rate of connections.
#[derive(Clone, Copy, Debug)]
pub struct DoorLimits {
    /// Maximum number of concurrent connections.
    pub places: usize,
    /// Connections accepted per second, after an initial burst.
    pub per_second: u32,
}

/// Burst size after a quiet period.
const AT_ONCE: u32 = 16;

/// A listener that accepts connections at a bounded rate.
#[derive(Debug)]
pub struct Door {
    listener: TcpListener,
    inside: Arc<Inside>,
    places: usize,
    pace: Pace,
}

impl Door {
    /// Accepts connections of this listener.
    pub fn new(listener: TcpListener, limits: DoorLimits) -> Self {
        Self {
            listener,
            inside: Arc::default(),
            places: limits.places,
            pace: Pace::new(limits.per_second, Instant::now()),
        }
    }

    /// The address of the listener.
    pub fn address(&self) -> io::Result<SocketAddr> {
        self.listener.local_addr()
    }

    /// Accepts the next connection and gives it a place. Cancel-safe: no connection is lost.
    pub async fn next(&mut self) -> (TcpStream, Place) {
        loop {
            sleep_until(self.pace.next()).await;
            match self.listener.accept().await {
                Ok((stream, _)) => {
                    self.pace.take(Instant::now());
                    return (stream, Inside::enter(&self.inside, self.places));
                }
                Err(error) => {
                    // Out of file descriptors or memory, which only time can fix.
                    debug!(%error, "a connection could not be accepted");
                    sleep(PAUSE).await;
                }
            }
        }
    }
}

/// The connections that hold a place, oldest first.
#[derive(Debug, Default)]
struct Inside(Mutex<Callers>);

#[derive(Debug, Default)]
struct Callers {
    /// The number of connections so far.
    number: u64,
    /// Dropping a sender evicts its connection.
    present: VecDeque<(u64, oneshot::Sender<()>)>,
}

impl Inside {
    fn enter(inside: &Arc<Self>, places: usize) -> Place {
        let mut callers = inside.lock();
        while callers.present.len() >= places.max(1) {
            callers.present.pop_front();
        }
        callers.number += 1;
        let (number, (stay, told)) = (callers.number, oneshot::channel());
        callers.present.push_back((number, stay));
        Place { number, told, inside: inside.clone() }
    }

    fn leave(&self, number: u64) {
        let present = &mut self.lock().present;
        if let Ok(place) = present.binary_search_by_key(&number, |(number, _)| *number) {
            present.remove(place);
        }
    }

    /// The data is consistent between any two statements, so poisoning is ignored.
    fn lock(&self) -> MutexGuard<'_, Callers> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A place of a connection; dropping it frees the place.
#[derive(Debug)]
pub struct Place {
    number: u64,
    told: oneshot::Receiver<()>,
    inside: Arc<Inside>,
}

impl Place {
    /// Runs `work`. Returns None if the connection is evicted first.
    pub async fn keep<T>(&mut self, work: impl Future<Output = T>) -> Option<T> {
        tokio::select! {
            biased;
            done = work => Some(done),
            _ = &mut self.told => None,
        }
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        self.inside.leave(self.number);
    }
}

/// Rate limiter: an even rate, with a burst after a quiet period.
#[derive(Debug)]
struct Pace {
    each: Duration,
    /// When the budget used so far has been earned back.
    used_until: Instant,
}

impl Pace {
    fn new(per_second: u32, now: Instant) -> Self {
        Self { each: Duration::from_secs(1) / per_second.max(1), used_until: now }
    }

    fn next(&self) -> Instant {
        // The subtraction fails only near the start of the clock.
        self.used_until.checked_sub(self.each * AT_ONCE).unwrap_or(self.used_until)
    }

    fn take(&mut self, now: Instant) {
        self.used_until = self.used_until.max(now) + self.each;
    }
}

#[cfg(test)]
mod tests {
    use std::future::pending;

    use tokio::io::AsyncReadExt;
    use tokio::time::timeout;

    use super::*;

    const LONG: Duration = Duration::from_secs(30);

    #[test]
    fn callers_come_in_at_the_rate_and_a_few_at_once_after_a_quiet_time() {
        let mut now = Instant::now() + Duration::from_hours(1);
        let mut pace = Pace::new(200, now);
        let mut came = 0;
        let second = now + Duration::from_secs(1);
        while now < second {
            now = now.max(pace.next());
            pace.take(now);
            came += 1;
        }
        assert!((200..=200 + AT_ONCE + 1).contains(&came), "{came}");
        now += Duration::from_hours(1);
        let at_once = std::iter::repeat_with(|| {
            let free = pace.next() <= now;
            pace.take(now);
            free
        });
        assert_eq!(at_once.take_while(|free| *free).count(), AT_ONCE as usize + 1, "quiet saves up no more");
    }

    #[tokio::test]
    async fn the_first_to_come_goes_when_the_places_are_full_and_nobody_else() {
        let inside = Arc::<Inside>::default();
        let mut places: Vec<Place> = (0..3).map(|_| Inside::enter(&inside, 3)).collect();
        drop(places.remove(1));
        let mut third = Inside::enter(&inside, 3);
        assert_eq!(places[0].keep(async { 1 }).await, Some(1), "one had left, so nobody has to go");
        let mut fourth = Inside::enter(&inside, 3);
        assert_eq!(places[0].keep(pending::<()>()).await, None);
        for place in [&mut places[1], &mut third, &mut fourth] {
            assert!(timeout(Duration::from_millis(10), place.keep(pending::<()>())).await.is_err());
        }
        drop((places, third, fourth));
        assert!(inside.lock().present.is_empty());
    }

    #[tokio::test]
    async fn callers_that_hold_every_place_do_not_keep_another_out() {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let mut door = Door::new(listener, DoorLimits { places: 4, per_second: 1000 });
        let address = door.address().unwrap();
        let mut silent = Vec::new();
        for _ in 0..20 {
            silent.push(TcpStream::connect(address).await.unwrap());
            let (stream, mut place) = door.next().await;
            tokio::spawn(async move {
                place.keep(pending::<()>()).await;
                drop(stream);
            });
        }
        let _caller = TcpStream::connect(address).await.unwrap();
        let (_stream, mut place) = timeout(LONG, door.next()).await.unwrap();
        assert_eq!(place.keep(async { "served" }).await, Some("served"));
        for stream in &mut silent[..16] {
            let ended = timeout(LONG, stream.read(&mut [0; 8])).await.expect("it is held for ever");
            assert_eq!(ended.unwrap(), 0);
        }
    }
}
