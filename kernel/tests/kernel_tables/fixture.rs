//! A table with every kind of set, statement and element that the data plane knows, and its text.

use ipnet::IpNet;
use isp_dataplane::nft::{
    Base, Chain, ChainKind, Data, DataType, Element, Family, Field, Handle, Hook, InterfacePattern, Lookup,
    Match, Name, NewPriority, Protocol, Rule, Set, Statement, Table, Value, Verdict,
};

pub(crate) const NAME: &str = "isp-test";

pub(crate) const FRONTENDS: Name = Name::constant("frontends");
pub(crate) const ENDPOINTS: Name = Name::constant("endpoints");
const AFFINITY: Name = Name::constant("affinity");
const CHOOSE: Name = Name::constant("choose");
const CHOOSE_1: Name = Name::constant("choose-1");
const CHOOSE_2: Name = Name::constant("choose-2");
const DISPATCH: Name = Name::constant("dispatch");
const MASQUERADED: Name = Name::constant("masqueraded");
const ALLOWED: Name = Name::constant("allowed");
const NODE_ADDRESSES: Name = Name::constant("node-addresses");
const REJECTED: Name = Name::constant("rejected");
const SERVICES: Name = Name::constant("services");
const FINISH: Name = Name::constant("finish");

/// The bits of a handle that have the number of endpoints.
const COUNT: Handle = Handle(0xfff0_0000);

pub(crate) fn handle(count: u32, identity: u32) -> Handle {
    Handle(count << 20 | identity)
}

const FRONTEND: [Field; 3] = [Field::Daddr, Field::L4Proto, Field::Dport];

fn set(name: Name, key: &[Field], data: DataType) -> Set {
    Set { name, key: key.to_vec(), data, interval: false, dynamic: false, size: None }
}

fn values(fields: &[Field]) -> DataType {
    DataType::Values(fields.to_vec())
}

fn sets() -> Vec<Set> {
    let endpoint = values(&[Field::Daddr, Field::Dport]);
    let allowed = [Field::Daddr, Field::L4Proto, Field::Dport, Field::Saddr];
    vec![
        set(FRONTENDS, &FRONTEND, values(&[Field::Priority])),
        set(ENDPOINTS, &[Field::Priority, Field::Random(2)], endpoint.clone()),
        Set { dynamic: true, size: Some(65535), ..set(AFFINITY, &[Field::Saddr, Field::Priority], endpoint) },
        set(DISPATCH, &[Field::Priority], DataType::Verdict),
        set(MASQUERADED, &[Field::Priority], DataType::None),
        Set { interval: true, ..set(ALLOWED, &allowed, DataType::None) },
        Set { interval: true, ..set(NODE_ADDRESSES, &[Field::Daddr], DataType::None) },
        set(REJECTED, &FRONTEND, DataType::None),
    ]
}

fn rule(statements: Vec<Statement>) -> Rule {
    Rule { statements, comment: None }
}

fn lookup(key: &[Field], set: Name) -> Lookup {
    Lookup { key: key.to_vec(), set }
}

fn goto(chain: Name) -> Statement {
    Statement::Verdict(Verdict::Goto(chain))
}

fn jump(chain: Name) -> Statement {
    Statement::Verdict(Verdict::Jump(chain))
}

fn test(test: Match) -> Statement {
    Statement::Match(test)
}

fn in_set(key: &[Field], set: Name, negated: bool) -> Statement {
    Statement::InSet { lookup: lookup(key, set), negated }
}

fn set_priority(value: NewPriority) -> Statement {
    Statement::SetPriority(value)
}

fn regular(name: Name, rules: Vec<Rule>) -> Chain {
    Chain { name, base: None, rules }
}

fn base(name: &'static str, kind: ChainKind, hook: Hook, priority: i32, rules: Vec<Rule>) -> Chain {
    Chain { name: Name::constant(name), base: Some(Base { kind, hook, priority }), rules }
}

fn choose(count: u32) -> Vec<Rule> {
    let choose = |protocol| {
        let lookup = lookup(&[Field::Priority, Field::Random(count)], ENDPOINTS);
        rule(vec![test(Match::Protocol(protocol)), Statement::Dnat(lookup)])
    };
    Protocol::ALL.map(choose).to_vec()
}

/// `nft` 1.0.6 cannot read the text of an `update` with two IPv6 addresses.
fn finish(family: Family) -> Vec<Rule> {
    let mut rules = vec![rule(vec![
        in_set(&[Field::Priority], MASQUERADED, false),
        set_priority(NewPriority::None),
        Statement::Masquerade,
    ])];
    if family == Family::Ip {
        rules.push(rule(vec![Statement::Update {
            lookup: lookup(&[Field::Saddr, Field::Priority], AFFINITY),
            data: vec![Field::Daddr, Field::Dport],
            timeout: 10800,
        }]));
    }
    rules.push(rule(vec![set_priority(NewPriority::None)]));
    rules
}

/// Rules that never match, one for each statement that the others do not have.
fn odd(family: Family) -> Vec<Rule> {
    let prefix = |v4: &str, v6: &str, bits: (u8, u8)| match family {
        Family::Ip => IpNet::new(v4.parse().unwrap(), bits.0).unwrap(),
        Family::Ip6 => IpNet::new(v6.parse().unwrap(), bits.1).unwrap(),
    };
    let source = |prefix, negated| test(Match::Source { prefix, negated });
    let interface = |pattern, negated| test(Match::Interface { pattern, negated });
    let drop = || Statement::Verdict(Verdict::Drop);
    vec![
        rule(vec![
            source(prefix("10.244.0.0", "fd0f::", (16, 64)), false),
            source(prefix("10.240.0.0", "fd0f::", (12, 61)), true),
            drop(),
        ]),
        rule(vec![
            interface(InterfacePattern::Name("no-such-if".to_owned()), false),
            interface(InterfacePattern::Prefix("veth".to_owned()), true),
            set_priority(NewPriority::Or(Handle(0x0001_0002))),
            set_priority(NewPriority::And(Handle(0xfff0_0001))),
            drop(),
        ]),
        rule(vec![
            test(Match::SourceIsLocal),
            test(Match::PriorityBits { mask: COUNT, set: true }),
            test(Match::PriorityBits { mask: COUNT, set: false }),
            drop(),
        ]),
    ]
}

pub(crate) fn table(family: Family) -> Table {
    let allowed = [Field::Daddr, Field::L4Proto, Field::Dport, Field::Saddr];
    let original = [Field::OriginalDaddr, Field::L4Proto, Field::OriginalDport];
    let finished = |protocol| {
        rule(vec![
            test(Match::Redirected),
            test(Match::Protocol(protocol)),
            set_priority(NewPriority::Map(lookup(&original, FRONTENDS))),
            goto(FINISH),
        ])
    };
    let chains = vec![
        regular(CHOOSE_1, choose(1)),
        regular(CHOOSE_2, choose(2)),
        regular(CHOOSE, vec![rule(vec![Statement::PriorityVerdict { mask: COUNT, map: DISPATCH }])]),
        regular(
            SERVICES,
            vec![rule(vec![set_priority(NewPriority::Map(lookup(&FRONTEND, FRONTENDS))), goto(CHOOSE)])],
        ),
        regular(FINISH, finish(family)),
        regular(Name::constant("odd"), odd(family)),
        base(
            "nat-prerouting",
            ChainKind::Nat,
            Hook::Prerouting,
            -105,
            vec![Rule { statements: vec![jump(SERVICES)], comment: Some("packets from outside") }],
        ),
        base("nat-output", ChainKind::Nat, Hook::Output, -105, vec![rule(vec![jump(SERVICES)])]),
        base("nat-postrouting", ChainKind::Nat, Hook::Postrouting, 95, Protocol::ALL.map(finished).to_vec()),
        base(
            "filter-prerouting",
            ChainKind::Filter,
            Hook::Prerouting,
            -110,
            vec![rule(vec![
                test(Match::NewConnection),
                in_set(&[Field::Daddr], NODE_ADDRESSES, false),
                in_set(&allowed, ALLOWED, true),
                Statement::Verdict(Verdict::Drop),
            ])],
        ),
        base(
            "filter-input",
            ChainKind::Filter,
            Hook::Input,
            -5,
            vec![rule(vec![in_set(&FRONTEND, REJECTED, false), Statement::Reject])],
        ),
    ];
    Table { family, name: Name::constant(NAME), sets: sets(), chains }
}

/// The same as text, written by hand.
pub(crate) fn text(family: Family) -> String {
    let update = match family {
        Family::Ip => "update @affinity { IP saddr . meta priority timeout 3h : IP daddr . th dport }",
        Family::Ip6 => "",
    };
    let (net, other_net) = match family {
        Family::Ip => ("10.244.0.0/16", "10.240.0.0/12"),
        Family::Ip6 => ("fd0f::/64", "fd0f::/61"),
    };
    let text = format!(
        r#"table IP {NAME} {{
  map frontends {{ typeof IP daddr . meta l4proto . th dport : meta priority; }}
  map endpoints {{ typeof meta priority . numgen random mod 2 : IP daddr . th dport; }}
  map affinity {{ typeof IP saddr . meta priority : IP daddr . th dport; size 65535; flags dynamic,timeout; }}
  map dispatch {{ typeof meta priority : verdict; }}
  set masqueraded {{ typeof meta priority; }}
  set allowed {{ typeof IP daddr . meta l4proto . th dport . IP saddr; flags interval; }}
  set node-addresses {{ typeof IP daddr; flags interval; }}
  set rejected {{ typeof IP daddr . meta l4proto . th dport; }}
  chain choose-1 {{
    meta l4proto tcp dnat IP to meta priority . numgen random mod 1 map @endpoints
    meta l4proto udp dnat IP to meta priority . numgen random mod 1 map @endpoints
    meta l4proto sctp dnat IP to meta priority . numgen random mod 1 map @endpoints
  }}
  chain choose-2 {{
    meta l4proto tcp dnat IP to meta priority . numgen random mod 2 map @endpoints
    meta l4proto udp dnat IP to meta priority . numgen random mod 2 map @endpoints
    meta l4proto sctp dnat IP to meta priority . numgen random mod 2 map @endpoints
  }}
  chain choose {{ meta priority & fff0:0 vmap @dispatch; }}
  chain services {{ meta priority set IP daddr . meta l4proto . th dport map @frontends goto choose; }}
  chain finish {{
    meta priority @masqueraded meta priority set none masquerade fully-random
    {update}
    meta priority set none
  }}
  chain odd {{
    IP saddr {net} IP saddr != {other_net} drop
    iifname "no-such-if" iifname != "veth*" meta priority set meta priority | 1:2 meta priority set meta priority & fff0:1 drop
    fib saddr type local meta priority & fff0:0 != none meta priority & fff0:0 == none drop
  }}
  chain nat-prerouting {{ type nat hook prerouting priority -105; jump services comment "packets from outside"; }}
  chain nat-output {{ type nat hook output priority -105; jump services; }}
  chain nat-postrouting {{ type nat hook postrouting priority 95;
    ct status dnat meta l4proto tcp meta priority set ct original IP daddr . meta l4proto . ct original proto-dst map @frontends goto finish
    ct status dnat meta l4proto udp meta priority set ct original IP daddr . meta l4proto . ct original proto-dst map @frontends goto finish
    ct status dnat meta l4proto sctp meta priority set ct original IP daddr . meta l4proto . ct original proto-dst map @frontends goto finish
  }}
  chain filter-prerouting {{ type filter hook prerouting priority -110;
    ct state new IP daddr @node-addresses IP daddr . meta l4proto . th dport . IP saddr != @allowed drop
  }}
  chain filter-input {{ type filter hook input priority -5; IP daddr . meta l4proto . th dport @rejected reject; }}
}}
"#
    );
    text.replace("IP ", &format!("{} ", family.keyword()))
}

pub(crate) fn address(family: Family, last: u8) -> Value {
    Value::Address(match family {
        Family::Ip => format!("10.96.0.{last}").parse().unwrap(),
        Family::Ip6 => format!("fd00::{last:x}").parse().unwrap(),
    })
}

pub(crate) fn element(set: Name, key: Vec<Value>, data: Data) -> Element {
    Element { set, key, last: None, data }
}

pub(crate) fn frontend(family: Family, last: u8, handle: Handle) -> Element {
    let key = vec![address(family, last), Value::Protocol(Protocol::Tcp), Value::Port(80)];
    element(FRONTENDS, key, Data::Values(vec![Value::Handle(handle)]))
}

pub(crate) fn endpoint(handle: Handle, index: u32, address: Value, port: u16) -> Element {
    let key = vec![Value::Handle(handle), Value::Index(index)];
    element(ENDPOINTS, key, Data::Values(vec![address, Value::Port(port)]))
}

/// Elements of every set but the dynamic one.
pub(crate) fn elements(family: Family) -> Vec<Element> {
    let (one, two) = (handle(1, 0xa), handle(2, 0xb));
    let allowed = |first, last| {
        let key = |source| {
            vec![address(family, 1), Value::Protocol(Protocol::Tcp), Value::Port(80), address(family, source)]
        };
        Element { set: ALLOWED, key: key(first), last: Some(key(last)), data: Data::None }
    };
    let range = |first, last| Element {
        set: NODE_ADDRESSES,
        key: vec![first],
        last: Some(vec![last]),
        data: Data::None,
    };
    let end = Value::Address(match family {
        Family::Ip => "255.255.255.255".parse().unwrap(),
        Family::Ip6 => "ffff:ffff:ffff:ffff:ffff:ffff:ffff:ffff".parse().unwrap(),
    });
    let choice = |count, chain| {
        element(DISPATCH, vec![Value::Handle(handle(count, 0))], Data::Verdict(Verdict::Goto(chain)))
    };
    vec![
        frontend(family, 1, one),
        frontend(family, 2, two),
        endpoint(one, 0, address(family, 101), 8080),
        endpoint(two, 0, address(family, 101), 8080),
        endpoint(two, 1, address(family, 102), 8081),
        choice(1, CHOOSE_1),
        choice(2, CHOOSE_2),
        element(MASQUERADED, vec![Value::Handle(two)], Data::None),
        allowed(16, 31),
        allowed(200, 200),
        range(address(family, 8), address(family, 15)),
        range(address(family, 16), address(family, 17)),
        range(address(family, 255), end),
        element(
            REJECTED,
            vec![address(family, 9), Value::Protocol(Protocol::Sctp), Value::Port(9)],
            Data::None,
        ),
    ]
}
