//! Hostile values. All of them derive from a seed, so that each case can be repeated.

use serde_json::{Map, Value, json};

/// A random number generator: splitmix64.
pub(super) struct Dice(u64);

impl Dice {
    pub(super) fn new(seed: u64) -> Self {
        Self(seed)
    }

    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    pub(super) fn below(&mut self, bound: usize) -> usize {
        usize::try_from(self.next() % u64::try_from(bound.max(1)).unwrap()).unwrap()
    }

    /// True with probability 1/`cases`.
    pub(super) fn one_in(&mut self, cases: usize) -> bool {
        self.below(cases) == 0
    }

    pub(super) fn pick<'a, T: ?Sized>(&mut self, from: &[&'a T]) -> &'a T {
        from[self.below(from.len())]
    }

    pub(super) fn one_of<T: Copy, const N: usize>(&mut self, from: [T; N]) -> T {
        from[self.below(N)]
    }

    /// A text: a meaningful name or an arbitrary one.
    pub(super) fn text(&mut self) -> String {
        match self.below(12) {
            0 => String::new(),
            1 => "x".repeat(self.below(400)),
            2 => "é\u{202e}\u{0}🦀".to_owned(),
            3 => "../../etc\n".to_owned(),
            _ => self
                .pick(&[
                    "default",
                    "even",
                    "web",
                    "frontend",
                    "kube-proxy",
                    "sourcepreserve-operator",
                    "proxy-agent",
                    "proxy-agent-images",
                    "0123456789",
                    "-",
                    "True",
                    "Full",
                ])
                .to_owned(),
        }
    }

    pub(super) fn number(&mut self) -> Value {
        match self.below(10) {
            0 => json!(i64::MIN),
            1 => json!(i64::MAX),
            2 => json!(u32::MAX),
            3 => json!(u64::MAX),
            4 => json!(i32::MIN),
            5 => json!(1.5e300),
            6 => json!(-1),
            _ => json!(self.below(4)),
        }
    }

    pub(super) fn integer(&mut self) -> i64 {
        self.one_of([i64::MIN, i64::MAX, -1, 0, 1, 2, i64::from(u32::MAX)])
    }

    pub(super) fn time(&mut self) -> &'static str {
        self.pick(&[
            "9999-12-30T22:00:00.999999999Z",
            "-009999-01-02T01:59:59Z",
            "2026-01-01T00:00:00Z",
            "2026-01-01T23:59:60Z",
            "1970-01-01T00:00:00Z",
            "9999-12-31T23:59:59Z",
            "yesterday",
            "",
        ])
    }

    /// A timestamp that the API server accepts.
    pub(super) fn real_time(&mut self) -> &'static str {
        self.pick(&[
            "9999-12-30T22:00:00Z",
            "0001-01-01T00:00:00Z",
            "2026-01-01T00:00:00Z",
            "2025-01-01T00:00:00Z",
        ])
    }

    /// Arbitrary JSON.
    pub(super) fn any(&mut self, depth: usize) -> Value {
        match self.below(if depth == 0 { 5 } else { 8 }) {
            0 => Value::Null,
            1 => json!(self.one_in(2)),
            2 => self.number(),
            3 => json!(self.time()),
            4 => json!(self.text()),
            5 => (0..self.below(4)).map(|_| self.any(depth - 1)).collect(),
            _ => {
                let fields = (0..self.below(4)).map(|_| (self.text(), self.any(depth - 1)));
                Value::Object(fields.collect::<Map<_, _>>())
            }
        }
    }

    /// A corrupted annotation: unchanged, with one field of another type, truncated, or unrelated.
    pub(super) fn mangled(&mut self, mut record: Value) -> String {
        match self.below(8) {
            0 => {
                let text = record.to_string();
                let cut = (0..=self.below(text.len())).rev().find(|end| text.is_char_boundary(*end));
                text[..cut.unwrap_or_default()].to_owned()
            }
            1 => self.any(4).to_string(),
            2 => "[".repeat(self.below(5000)),
            3 => {
                let keys: Vec<String> =
                    record.as_object().into_iter().flatten().map(|(key, _)| key.clone()).collect();
                if let Some(key) = keys.get(self.below(keys.len())) {
                    record[key] = self.any(2);
                }
                record.to_string()
            }
            _ => record.to_string(),
        }
    }
}
