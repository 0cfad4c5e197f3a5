//! Versions of Kubernetes and Linux: their first two numbers.

use std::fmt;

/// Major and minor version.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Version(pub(super) u32, pub(super) u32);

impl Version {
    /// Of `v1.33.1+k3s1`, `6.1.0-28-amd64`, `5.15`. None: there are no two numbers.
    pub(super) fn of(text: &str) -> Option<Self> {
        let mut parts = text.trim_start_matches('v').split('.');
        let mut number = || {
            let part = parts.next()?;
            let end = part.find(|letter: char| !letter.is_ascii_digit()).unwrap_or(part.len());
            part[..end].parse().ok()
        };
        Some(Self(number()?, number()?))
    }
}

impl fmt::Display for Version {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{}", self.0, self.1)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn versions_are_compared_by_two_numbers() {
        for (text, expected) in [
            ("v1.33.1+k3s1", Some(Version(1, 33))),
            ("6.1.0-28-amd64", Some(Version(6, 1))),
            ("5.15", Some(Version(5, 15))),
            ("v1.30-eks", Some(Version(1, 30))),
            ("", None),
            ("6", None),
            ("linux", None),
        ] {
            assert_eq!(Version::of(text), expected, "{text:?}");
        }
        assert!(Version::of("5.15") > Some(Version(5, 6)));
    }
}
