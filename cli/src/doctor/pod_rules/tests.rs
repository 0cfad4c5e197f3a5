use isp_pod_rules::explain::{self, Mode};

use super::*;

#[test]
fn a_problem_with_rules_is_a_finding_of_the_same_severity() {
    let problem = |severity| explain::Finding {
        code: explain::Code::ModeDiffers,
        severity,
        message: "annotation says TPROXY".to_owned(),
    };
    let findings = vec![problem(explain::Severity::Error), problem(explain::Severity::Warning)];
    let explanation = Explanation {
        mode: Mode::Redirect,
        claims: Vec::new(),
        origins: Vec::new(),
        back_ends: Vec::new(),
        families: Vec::new(),
        findings,
        unknown: Vec::new(),
    };
    let found = judge(&Key::new("shop", "cart-1"), &explanation);
    let severities: Vec<_> = found.iter().map(|finding| finding.severity).collect();
    assert_eq!(severities, [Severity::Error, Severity::Warning]);
    assert_eq!(found[0].subject, Subject::new("Pod", "shop/cart-1"));
    assert!(found[0].remedy[0].starts_with("kubectl isp rules shop/cart-1"), "{:?}", found[0]);
}
