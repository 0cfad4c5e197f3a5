//! Random numbers from a seed: `SplitMix64`.

use std::env;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

/// A stream of random numbers.
pub struct Random(u64);

impl Random {
    /// The stream of the seed in `ISP_SOAK_SEED`, or of the time. Prints the seed.
    pub fn of_campaign(name: &str) -> Self {
        let drawn = SystemTime::now().duration_since(UNIX_EPOCH).unwrap().as_secs();
        let seed = env::var("ISP_SOAK_SEED").map_or(drawn, |seed| seed.parse().unwrap());
        println!("{name}: ISP_SOAK_SEED={seed}");
        Self::new(seed)
    }

    /// The stream of a seed.
    pub fn new(seed: u64) -> Self {
        Self(seed)
    }

    /// Returns an independent stream of numbers, for a concurrent task.
    #[must_use]
    pub fn fork(&mut self) -> Self {
        Self(self.next())
    }

    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mixed = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    /// A number below the limit.
    pub fn below(&mut self, limit: usize) -> usize {
        usize::try_from(self.next() % u64::try_from(limit).unwrap()).unwrap()
    }

    /// True so many times of a hundred.
    pub fn chance(&mut self, percent: usize) -> bool {
        self.below(100) < percent
    }

    /// True once in so many times.
    pub fn once_in(&mut self, times: usize) -> bool {
        self.below(times) == 0
    }

    /// One of the choices.
    pub fn pick<T: Clone>(&mut self, choices: &[T]) -> T {
        choices[self.below(choices.len())].clone()
    }

    /// Some of the choices, each at most once.
    pub fn some<T: Clone>(&mut self, choices: &[T], most: usize) -> Vec<T> {
        let mut left = choices.to_vec();
        let count = self.below(most + 1).min(left.len());
        (0..count).map(|_| left.swap_remove(self.below(left.len()))).collect()
    }

    /// A duration shorter than so many milliseconds.
    pub fn pause(&mut self, milliseconds: usize) -> Duration {
        Duration::from_millis(self.below(milliseconds) as u64)
    }
}
