//! The runbook: the address of each code's section, and its text. SARIF and `check` refer to it.

use super::finding::Code;

const PAGE: &str = concat!(env!("CARGO_PKG_REPOSITORY"), "/blob/main/docs/doctor.md");
const TEXT: &str = include_str!("../../../docs/doctor.md");

/// The address of the section.
pub(crate) fn address(code: Code) -> String {
    format!("{PAGE}#{}", anchor(&heading(code)))
}

/// The text of the section, without its heading.
pub(crate) fn section(code: Code) -> &'static str {
    let start = format!("\n## {}\n", heading(code));
    let text = TEXT.split_once(&start).map_or("", |(_, after)| after);
    text.split("\n## ").next().unwrap_or_default().trim()
}

fn heading(code: Code) -> String {
    format!("{} {}", code.as_str(), code.title())
}

/// As GitHub makes it of a heading.
fn anchor(heading: &str) -> String {
    let letters = heading.chars().filter_map(|letter| match letter {
        ' ' => Some('-'),
        '-' | '_' => Some(letter),
        letter if letter.is_alphanumeric() => Some(letter.to_ascii_lowercase()),
        _ => None,
    });
    letters.collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_code_has_an_address_and_a_text() {
        for code in Code::ALL {
            assert!(section(*code).len() > 50, "{code:?}: {:?}", section(*code));
        }
        assert_eq!(
            address(Code::PodWebhookLate),
            "https://github.com/ingress-source-preserve/ingress-source-preserve/blob/main/docs/doctor.md\
             #isp107-the-webhook-is-called-after-istios-injector"
        );
        assert!(section(Code::IpModeProxy).starts_with("An address of the Service has `ipMode: Proxy`."));
    }
}
