//! Rules and statements as text.

use crate::nft::{Family, InterfacePattern, Lookup, Mark, Match, NewPriority, Owner, Rule, Statement};

use super::value::{self, fields, verdict};

/// One rule, without indentation.
pub(crate) fn rule(family: Family, rule: &Rule) -> String {
    let mut words: Vec<String> = rule.statements.iter().map(|each| statement(family, each)).collect();
    words.extend(rule.comment.map(|comment| format!("comment \"{comment}\"")));
    words.join(" ")
}

fn statement(family: Family, statement: &Statement) -> String {
    let by_map = |lookup: &Lookup| format!("{} map @{}", fields(family, &lookup.key), lookup.set);
    match statement {
        Statement::Match(what) => matches(family, what),
        Statement::InSet { lookup, negated } => {
            format!("{}{} @{}", fields(family, &lookup.key), unless(*negated), lookup.set)
        }
        Statement::SetPriority(value) => {
            let value = match value {
                NewPriority::None => "none".to_owned(),
                NewPriority::Map(lookup) => by_map(lookup),
                NewPriority::And(mask) => format!("meta priority & {mask}"),
                NewPriority::Or(mask) => format!("meta priority | {mask}"),
            };
            format!("meta priority set {value}")
        }
        Statement::PriorityVerdict { mask, map } => format!("meta priority & {mask} vmap @{map}"),
        Statement::Dnat(lookup) => format!("dnat {} to {}", family.keyword(), by_map(lookup)),
        Statement::Update { lookup, data, timeout } => format!(
            "update @{} {{ {} timeout {} : {} }}",
            lookup.set,
            fields(family, &lookup.key),
            duration(*timeout),
            fields(family, data)
        ),
        Statement::Masquerade => "masquerade fully-random".to_owned(),
        Statement::Reject => "reject".to_owned(),
        Statement::SetMark { of, mark } => {
            format!("{of} set {}", new_mark(of.keyword(), *mark), of = of.keyword())
        }
        Statement::Tproxy(port) => format!("tproxy to :{port}"),
        Statement::Redirect(port) => format!("redirect to :{port}"),
        Statement::Verdict(to) => verdict(to),
    }
}

fn matches(family: Family, what: &Match) -> String {
    match what {
        Match::Protocol(protocol) => format!("meta l4proto {}", protocol.keyword()),
        Match::Source { prefix, negated } => {
            format!("{} saddr{} {}", family.keyword(), unless(*negated), value::prefix(*prefix))
        }
        Match::Interface { pattern, negated } => match pattern {
            InterfacePattern::Name(name) => format!("iifname{} \"{name}\"", unless(*negated)),
            InterfacePattern::Prefix(prefix) => format!("iifname{} \"{prefix}*\"", unless(*negated)),
        },
        Match::OtherProtocol(protocol) => format!("meta l4proto != {}", protocol.keyword()),
        Match::Port(port) => format!("th dport {port}"),
        Match::Syn => "tcp flags syn / syn,ack".to_owned(),
        Match::OutputInterface(name) => format!("oifname \"{name}\""),
        Match::SourceIsLocal => "fib saddr type local".to_owned(),
        Match::SourceIsForeign => "fib saddr type != local".to_owned(),
        Match::DestinationIsLocal => "fib daddr type local".to_owned(),
        Match::DestinationIsForeign => "fib daddr type != local".to_owned(),
        Match::PriorityBits { mask, set: true } => format!("meta priority & {mask} != none"),
        Match::PriorityBits { mask, set: false } => format!("meta priority & {mask} == none"),
        Match::NewConnection => "ct state new".to_owned(),
        Match::Redirected => "ct status dnat".to_owned(),
        Match::Reply => "ct direction reply".to_owned(),
        Match::Marked { of, mark } => marked(of.keyword(), *mark),
        Match::Owner(owner) => match owner {
            Owner::User(id) => format!("meta skuid {id}"),
            Owner::Group(id) => format!("meta skgid {id}"),
            Owner::NetCls(id) => format!("meta cgroup {id}"),
            Owner::Cgroup { path, .. } => {
                format!("socket cgroupv2 level {} \"{path}\"", path.split('/').count())
            }
        },
    }
}

/// A mask of the first bits only is a prefix for `nft`.
fn marked(of: &str, mark: Mark) -> String {
    let Mark { value, mask } = mark;
    let leading = mask.leading_ones();
    match leading {
        u32::BITS => format!("{of} {value:#010x}"),
        1.. if mask.count_ones() == leading => format!("{of} {value:#010x}/{leading}"),
        _ => format!("{of} & {mask:#010x} == {value:#010x}"),
    }
}

/// The other bits stay; `nft` leaves out what changes nothing.
fn new_mark(of: &str, mark: Mark) -> String {
    let Mark { value, mask } = mark;
    match (mask, !mask | value) {
        (u32::MAX, _) => format!("{value:#010x}"),
        (_, u32::MAX) => format!("{of} | {value:#010x}"),
        (_, kept) => format!("{of} & {kept:#010x} | {value:#010x}"),
    }
}

fn unless(negated: bool) -> &'static str {
    if negated { " !=" } else { "" }
}

/// Seconds in the units of `nft`: `1d2h3m4s`.
fn duration(seconds: u32) -> String {
    let parts =
        [(seconds / 86400, 'd'), (seconds / 3600 % 24, 'h'), (seconds / 60 % 60, 'm'), (seconds % 60, 's')];
    let written = parts.iter().filter(|(amount, _)| *amount > 0);
    written.map(|(amount, unit)| format!("{amount}{unit}")).collect::<Vec<_>>().concat()
}
