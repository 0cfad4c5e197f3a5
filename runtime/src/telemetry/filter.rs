//! Parses the log filter of the command line.
//!
//! The parsers of tracing-subscriber take a mistyped level for a target and then log almost
//! nothing, and the larger one pulls in a regex engine. So this module parses, and
//! tracing-subscriber only matches.

use std::str::FromStr;

use tracing_subscriber::filter::{LevelFilter, Targets};

/// A part of the filter that cannot be parsed.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "{part:?} is neither LEVEL nor TARGET=LEVEL; levels are off, error, warn, info, debug and trace, as in info,hyper=debug"
)]
pub struct FilterError {
    part: String,
}

/// A parsed filter: a level per target, and one for all others.
#[derive(Debug, Clone, PartialEq)]
pub struct Filter(Targets);

impl Filter {
    pub(super) fn targets(&self) -> Targets {
        self.0.clone()
    }
}

impl FromStr for Filter {
    type Err = FilterError;

    fn from_str(text: &str) -> Result<Self, FilterError> {
        let mut targets = Targets::new().with_default(LevelFilter::INFO);
        for part in text.split(',').map(str::trim) {
            targets = match parse(part) {
                Some((Some(target), level)) => targets.with_target(target, level),
                Some((None, level)) => targets.with_default(level),
                None => return Err(FilterError { part: part.to_owned() }),
            };
        }
        Ok(Self(targets))
    }
}

fn parse(part: &str) -> Option<(Option<&str>, LevelFilter)> {
    match part.split_once('=') {
        Some((target, text)) if is_target(target) => Some((Some(target), level(text)?)),
        Some(_) => None,
        None => Some((None, level(part)?)),
    }
}

fn level(text: &str) -> Option<LevelFilter> {
    // tracing would accept an empty string as a level.
    if text.is_empty() { None } else { text.parse().ok() }
}

/// A module path, or a custom target.
fn is_target(text: &str) -> bool {
    !text.is_empty()
        && text
            .chars()
            .all(|letter| letter.is_ascii_alphanumeric() || matches!(letter, '_' | ':' | '-' | '.'))
}

#[cfg(test)]
mod tests {
    use tracing::Level;

    use super::*;

    fn would_log(filter: &str, target: &str, level: Level) -> bool {
        filter.parse::<Filter>().unwrap().0.would_enable(target, &level)
    }

    #[test]
    fn a_level_alone_is_for_everything() {
        assert!(would_log("debug", "any", Level::DEBUG));
        assert!(!would_log("debug", "any", Level::TRACE));
        assert!(!would_log("off", "any", Level::ERROR));
        assert!(would_log("WARN", "any", Level::WARN));
    }

    #[test]
    fn a_target_has_its_own_level_and_so_have_the_modules_in_it() {
        let filter = "warn, isp_runtime=debug, isp_runtime::admin=off";
        assert!(would_log(filter, "isp_runtime::readiness", Level::DEBUG));
        assert!(!would_log(filter, "isp_runtime::admin", Level::ERROR));
        assert!(!would_log(filter, "hyper", Level::INFO));
    }

    #[test]
    fn without_a_level_that_stands_alone_the_rest_is_logged_from_info() {
        assert!(would_log("hyper=error", "any", Level::INFO));
        assert!(!would_log("hyper=error", "any", Level::DEBUG));
        assert!(!would_log("hyper=error", "hyper", Level::INFO));
    }

    #[test]
    fn what_is_no_filter_is_refused_by_the_part_that_is_wrong() {
        for (text, wrong) in [
            ("", ""),
            ("loud", "loud"),
            ("info,", ""),
            ("info,hyper", "hyper"),
            ("hyper=", "hyper="),
            ("=info", "=info"),
            ("a=b=info", "a=b=info"),
            ("info,[span]=debug", "[span]=debug"),
            ("6", "6"),
        ] {
            let error = text.parse::<Filter>().unwrap_err();
            assert_eq!(error, FilterError { part: wrong.to_owned() }, "{text}");
            assert!(error.to_string().contains("LEVEL nor TARGET=LEVEL"));
        }
    }
}
