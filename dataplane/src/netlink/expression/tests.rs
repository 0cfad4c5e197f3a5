use super::{Base, Comparison, Decision, Expression, Found, Register, read_all};
use crate::netlink::attributes::{Attributes, Writer};
use crate::netlink::nf_tables::list;

fn read_back(expressions: &[Expression]) -> Vec<Expression> {
    let mut bytes = Vec::new();
    for expression in expressions {
        Writer(&mut bytes).nest(list::ELEMENT, |out| expression.write(out));
    }
    read_all(Attributes(&bytes)).unwrap()
}

#[test]
fn every_expression_is_read_as_it_was_written() {
    let (one, two) = (Register(0), Register(5));
    let set = || "s".to_owned();
    let all = [
        Expression::Payload { base: Base::Network, offset: 12, length: 4, to: one },
        Expression::Payload { base: Base::Transport, offset: 2, length: 2, to: two },
        Expression::Meta { key: 2, to: one },
        Expression::SetMeta { key: 2, from: two },
        Expression::Conntrack { key: 0, direction: None, to: one },
        Expression::Conntrack { key: 20, direction: Some(0), to: one },
        Expression::SetConntrack { key: 3, from: one },
        Expression::Cgroup { level: 2, to: one },
        Expression::Fib { flags: 1, result: 3, to: one },
        Expression::Random { modulus: 7, to: two },
        Expression::Lookup { set: set(), from: one, found: Found::Key },
        Expression::Lookup { set: set(), from: one, found: Found::NoKey },
        Expression::Lookup { set: set(), from: one, found: Found::Data(two) },
        Expression::Lookup { set: set(), from: one, found: Found::Verdict },
        Expression::Compare { comparison: Comparison::Equal, from: one, value: vec![6] },
        Expression::Compare { comparison: Comparison::NotEqual, from: one, value: vec![0; 16] },
        Expression::Bitwise { from: one, to: one, mask: vec![1, 2, 3, 4], xor: vec![0; 4] },
        Expression::Immediate { to: one, value: vec![0; 4] },
        Expression::Verdict(Decision::Drop),
        Expression::Verdict(Decision::Accept),
        Expression::Verdict(Decision::Return),
        Expression::Verdict(Decision::Jump("c".to_owned())),
        Expression::Verdict(Decision::Goto("c".to_owned())),
        Expression::DestinationNat { family: 2, address: one, port: Some(two), flags: 0 },
        Expression::Masquerade { flags: 0x10 },
        Expression::Masquerade { flags: 0 },
        Expression::Redirect { port: one },
        Expression::Tproxy { family: 2, port: two },
        Expression::Reject { kind: 0, code: 3 },
        Expression::Update { set: set(), key: one, data: Some(two), timeout: 10_800_000 },
    ];
    assert_eq!(read_back(&all), all);
}

#[test]
fn an_expression_that_rules_of_ours_do_not_have_is_kept_by_its_name() {
    let counter = [Expression::Foreign("counter".to_owned())];
    assert_eq!(read_back(&counter), counter);
}

#[test]
fn a_register_has_the_name_that_the_kernel_reports() {
    let numbers: Vec<_> = (0..16).map(|word| Register(word).number()).collect();
    assert_eq!(numbers, [1, 9, 10, 11, 2, 13, 14, 15, 3, 17, 18, 19, 4, 21, 22, 23]);
    for word in 0..16 {
        assert_eq!(Register::from_number(Register(word).number()), Some(Register(word)));
        assert_eq!(Register::from_number(u32::from(word) + 8), Some(Register(word)));
    }
    assert_eq!(Register::from_number(0), None);
    assert_eq!(Register::from_number(24), None);
}
