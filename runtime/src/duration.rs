//! Durations on command lines: `500ms`, `15s`, `5m`, `12h`, `7d`.

use std::time::Duration;

/// Upper limit, since later times do not fit everywhere, for example in certificates.
const LONGEST: Duration = Duration::from_hours(100 * 365 * 24);

/// Parses a duration; used as a clap value parser.
pub fn parse(text: &str) -> Result<Duration, String> {
    let wrong =
        || format!("{text:?} is not a duration: write a number and ms, s, m, h or d, such as 15s or 7d");
    let digits = text.find(|character: char| !character.is_ascii_digit()).ok_or_else(wrong)?;
    let (number, unit) = text.split_at(digits);
    let number: u64 = number.parse().map_err(|_| wrong())?;
    let milliseconds: u64 = match unit {
        "ms" => 1,
        "s" => 1000,
        "m" => 60 * 1000,
        "h" => 60 * 60 * 1000,
        "d" => 24 * 60 * 60 * 1000,
        _ => return Err(wrong()),
    };
    let duration = number.checked_mul(milliseconds).map(Duration::from_millis);
    duration.filter(|duration| *duration <= LONGEST).ok_or_else(|| wrong() + ", at most a century")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_number_and_a_unit_make_a_duration_and_nothing_else_does() {
        assert_eq!(parse("500ms"), Ok(Duration::from_millis(500)));
        assert_eq!(parse("15s"), Ok(Duration::from_secs(15)));
        assert_eq!(parse("5m"), Ok(Duration::from_mins(5)));
        assert_eq!(parse("12h"), Ok(Duration::from_hours(12)));
        assert_eq!(parse("365d"), Ok(Duration::from_hours(24 * 365)));
        for wrong in ["", "15", "s", "-1s", "1.5s", "1 s", "15y", "99999999999999999999s"] {
            assert!(parse(wrong).unwrap_err().ends_with("such as 15s or 7d"), "{wrong}");
        }
        for long in ["99999999999s", "36501d", "18446744073709551615m"] {
            assert!(parse(long).unwrap_err().ends_with("at most a century"), "{long}");
        }
    }
}
