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

    /// Moments of a run that takes so long: a random one in each of so many equal parts.
    pub fn moments(&mut self, whole: Duration, parts: usize) -> Vec<Duration> {
        let part = whole / u32::try_from(parts).unwrap();
        let milliseconds = usize::try_from(part.as_millis()).unwrap().max(1);
        (0..parts).map(|number| part * u32::try_from(number).unwrap() + self.pause(milliseconds)).collect()
    }
}

/// Choices in random order. Each is drawn once before any is drawn again, so that few draws have
/// all of them.
pub struct Deck<T> {
    all: Vec<T>,
    left: Vec<T>,
}

impl<T: Clone> Deck<T> {
    /// A deck of these choices.
    pub fn new(choices: &[T]) -> Self {
        Self { all: choices.to_vec(), left: choices.to_vec() }
    }

    /// Draws any choice.
    pub fn draw(&mut self, random: &mut Random) -> T {
        self.draw_where(random, |_| true).unwrap()
    }

    /// Draws a choice that fits, if there is one. The others stay.
    pub fn draw_where(&mut self, random: &mut Random, fits: impl Fn(&T) -> bool) -> Option<T> {
        if !self.left.iter().any(&fits) {
            self.left.clone_from(&self.all);
        }
        let places: Vec<usize> = (0..self.left.len()).filter(|place| fits(&self.left[*place])).collect();
        (!places.is_empty()).then(|| self.left.swap_remove(random.pick(&places)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_deck_has_every_choice_before_it_repeats_one() {
        let (mut random, mut deck) = (Random::new(1), Deck::new(&[1, 2, 3, 4]));
        for _ in 0..3 {
            let mut drawn: Vec<i32> = (0..4).map(|_| deck.draw(&mut random)).collect();
            drawn.sort_unstable();
            assert_eq!(drawn, [1, 2, 3, 4]);
        }
    }

    #[test]
    fn every_part_of_a_run_has_its_moment() {
        let moments = Random::new(1).moments(Duration::from_secs(9), 3);
        let parts: Vec<u64> = moments.iter().map(|moment| moment.as_secs() / 3).collect();
        assert_eq!(parts, [0, 1, 2]);
    }

    #[test]
    fn a_choice_that_does_not_fit_stays_in_the_deck() {
        let (mut random, mut deck) = (Random::new(1), Deck::new(&[1, 2]));
        for _ in 0..3 {
            assert_eq!(deck.draw_where(&mut random, |choice| *choice == 1), Some(1));
        }
        assert_eq!(deck.draw_where(&mut random, |choice| *choice == 2), Some(2));
        assert_eq!(deck.draw_where(&mut random, |choice| *choice == 3), None);
    }
}
