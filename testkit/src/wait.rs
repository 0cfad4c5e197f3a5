//! Bounded waiting. A failure says what was awaited and what was seen last.

use std::fmt::Debug;
use std::time::{Duration, Instant};

/// How long a test waits, and how often it looks.
#[derive(Debug, Clone, Copy)]
pub struct Patience {
    /// When to give up. It only bounds a test that fails, so it is far longer than a busy machine
    /// needs.
    pub limit: Duration,
    /// The pause between two looks.
    pub pause: Duration,
}

impl Patience {
    /// Enough for everything that should take seconds.
    pub const DEFAULT: Self = Self { limit: Duration::from_mins(2), pause: Duration::from_millis(100) };

    /// Gives up after this time.
    pub const fn of(limit: Duration) -> Self {
        Self { limit, ..Self::DEFAULT }
    }

    /// Looks until something is found, and returns it. A look that does not end counts as a failure
    /// as well.
    pub async fn until<L: Look>(self, what: &str, mut look: impl AsyncFnMut() -> L) -> L::Found {
        let started = Instant::now();
        loop {
            let Ok(looked) = tokio::time::timeout(self.limit, look()).await else {
                panic!("{what}: a look did not end within {:?}", self.limit);
            };
            match looked.found() {
                Ok(found) => return found,
                Err(seen) => {
                    assert!(
                        started.elapsed() < self.limit,
                        "{what}: not within {:?}; last seen: {seen}",
                        self.limit
                    );
                }
            }
            tokio::time::sleep(self.pause).await;
        }
    }
}

/// Looks until something is found, and returns it; for [`Patience::DEFAULT`].
pub async fn until<L: Look>(what: &str, look: impl AsyncFnMut() -> L) -> L::Found {
    Patience::DEFAULT.until(what, look).await
}

/// The result of one look: found, or what was seen instead.
pub trait Look {
    /// What a successful wait returns.
    type Found;

    /// Returns what was found, or a description of what was seen instead.
    fn found(self) -> Result<Self::Found, String>;
}

impl Look for bool {
    type Found = ();

    fn found(self) -> Result<(), String> {
        if self { Ok(()) } else { Err("it is not so".to_owned()) }
    }
}

impl<T> Look for Option<T> {
    type Found = T;

    fn found(self) -> Result<T, String> {
        self.ok_or_else(|| "nothing".to_owned())
    }
}

impl<T, E: Debug> Look for Result<T, E> {
    type Found = T;

    fn found(self) -> Result<T, String> {
        self.map_err(|seen| format!("{seen:?}"))
    }
}

#[cfg(test)]
mod tests;
