//! Durations as people write them: `500ms`, `15s`, `10m`.

use std::time::Duration;

/// Reads one.
pub(super) fn parse(text: &str) -> Result<Duration, String> {
    let wrong = || format!("{text:?} is no duration: write a number and ms, s or m, such as 15s");
    let digits = text.find(|character: char| !character.is_ascii_digit()).ok_or_else(wrong)?;
    let (number, unit) = text.split_at(digits);
    let number: u64 = number.parse().map_err(|_| wrong())?;
    match unit {
        "ms" => Ok(Duration::from_millis(number)),
        "s" => Ok(Duration::from_secs(number)),
        "m" => number.checked_mul(60).map(Duration::from_secs).ok_or_else(wrong),
        _ => Err(wrong()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_number_and_a_unit_make_a_duration_and_nothing_else_does() {
        assert_eq!(parse("500ms"), Ok(Duration::from_millis(500)));
        assert_eq!(parse("15s"), Ok(Duration::from_secs(15)));
        assert_eq!(parse("10m"), Ok(Duration::from_mins(10)));
        for wrong in
            ["", "15", "s", "-1s", "1.5s", "1 s", "15h", "99999999999999999999s", "18446744073709551615m"]
        {
            assert!(parse(wrong).unwrap_err().contains("such as 15s"), "{wrong}");
        }
    }
}
