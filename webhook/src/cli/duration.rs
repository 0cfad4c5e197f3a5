//! Durations as people write them: `15s`, `5m`, `12h`, `7d`.

use std::time::Duration;

/// Reads one.
pub(super) fn parse(text: &str) -> Result<Duration, String> {
    let wrong = || format!("{text:?} is no duration: write a number and s, m, h or d, such as 7d");
    let digits = text.find(|character: char| !character.is_ascii_digit()).ok_or_else(wrong)?;
    let (number, unit) = text.split_at(digits);
    let number: u32 = number.parse().map_err(|_| wrong())?;
    let seconds: u32 = match unit {
        "s" => 1,
        "m" => 60,
        "h" => 60 * 60,
        "d" => 24 * 60 * 60,
        _ => return Err(wrong()),
    };
    let duration = Duration::from_secs(u64::from(number) * u64::from(seconds));
    if duration > LONGEST { Err(wrong() + ", a century at most") } else { Ok(duration) }
}

/// Certificates cannot tell times that are too far ahead.
const LONGEST: Duration = Duration::from_hours(100 * 365 * 24);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_number_and_a_unit_make_a_duration_and_nothing_else_does() {
        assert_eq!(parse("15s"), Ok(Duration::from_secs(15)));
        assert_eq!(parse("5m"), Ok(Duration::from_mins(5)));
        assert_eq!(parse("12h"), Ok(Duration::from_hours(12)));
        assert_eq!(parse("365d"), Ok(Duration::from_hours(24 * 365)));
        for wrong in ["", "15", "s", "-1s", "1.5s", "1 s", "15y", "500ms", "99999999999s", "36501d"] {
            assert!(parse(wrong).unwrap_err().contains("such as 7d"), "{wrong}");
        }
    }
}
