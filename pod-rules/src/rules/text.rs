//! Rules as text, in the words of `nft`, whatever program wrote them.

use std::fmt::{self, Display, Formatter, Result, Write};
use std::net::{Ipv4Addr, Ipv6Addr};

use super::{
    Assign, BackEnd, Base, Field, MarkOf, Match, Rule, Ruleset, Side, Statement, TableFamily, Tproxy, Verdict,
};

impl Display for Ruleset {
    fn fmt(&self, out: &mut Formatter<'_>) -> Result {
        for table in &self.tables {
            writeln!(out, "# {}", table.back_end)?;
            writeln!(out, "table {} {} {{", table.family, table.name)?;
            for (name, chain) in &table.chains {
                writeln!(out, "\tchain {name} {{")?;
                if let Some(base) = chain.base {
                    writeln!(out, "\t\t{base}")?;
                }
                for rule in &chain.rules {
                    writeln!(out, "\t\t{rule}")?;
                }
                writeln!(out, "\t}}")?;
            }
            writeln!(out, "}}")?;
        }
        Ok(())
    }
}

impl Display for TableFamily {
    fn fmt(&self, out: &mut Formatter<'_>) -> Result {
        out.write_str(match self {
            Self::Ip => "ip",
            Self::Ip6 => "ip6",
            Self::Inet => "inet",
        })
    }
}

impl Display for BackEnd {
    fn fmt(&self, out: &mut Formatter<'_>) -> Result {
        out.write_str(match self {
            Self::Nftables => "nftables",
            Self::IptablesNft => "iptables-nft",
            Self::IptablesLegacy => "iptables-legacy",
        })
    }
}

impl Display for Base {
    fn fmt(&self, out: &mut Formatter<'_>) -> Result {
        let (kind, hook) = (self.kind.keyword(), self.hook.keyword());
        let policy = if self.drops { "drop" } else { "accept" };
        write!(out, "type {kind} hook {hook} priority {}; policy {policy};", self.priority)
    }
}

impl Display for Rule {
    fn fmt(&self, out: &mut Formatter<'_>) -> Result {
        for (place, statement) in self.statements.iter().enumerate() {
            let space = if place == 0 { "" } else { " " };
            write!(out, "{space}{statement}")?;
        }
        if self.statements.is_empty() {
            out.write_str("continue")?;
        }
        match &self.comment {
            Some(comment) => write!(out, " comment {comment:?}"),
            None => Ok(()),
        }
    }
}

impl Display for Statement {
    fn fmt(&self, out: &mut Formatter<'_>) -> Result {
        let to = |out: &mut Formatter<'_>, port: Option<u16>| match port {
            Some(port) => write!(out, " to :{port}"),
            None => Ok(()),
        };
        match self {
            Self::Match(test) => test.fmt(out),
            Self::Assign(assign) => assign.fmt(out),
            Self::Redirect { port } => {
                out.write_str("redirect")?;
                to(out, *port)
            }
            Self::Tproxy(Tproxy { port, mark, .. }) => {
                out.write_str("tproxy")?;
                to(out, *port)?;
                mark.map_or(Ok(()), |mark| write!(out, " {mark}"))
            }
            Self::DestinationNat { address, port } => {
                out.write_str("dnat to ")?;
                match address {
                    Some(address) if address.is_ipv6() => write!(out, "[{address}]")?,
                    Some(address) => write!(out, "{address}")?,
                    None => {}
                }
                port.map_or(Ok(()), |port| write!(out, ":{port}"))
            }
            Self::SourceNat => out.write_str("snat"),
            Self::Verdict(verdict) => verdict.fmt(out),
            Self::Unknown(what) => write!(out, "<unknown: {what}>"),
        }
    }
}

impl Display for Verdict {
    fn fmt(&self, out: &mut Formatter<'_>) -> Result {
        match self {
            Self::Accept => out.write_str("accept"),
            Self::Drop => out.write_str("drop"),
            Self::Return => out.write_str("return"),
            Self::Jump(chain) => write!(out, "jump {chain}"),
            Self::Goto(chain) => write!(out, "goto {chain}"),
        }
    }
}

impl Display for MarkOf {
    fn fmt(&self, out: &mut Formatter<'_>) -> Result {
        out.write_str(match self {
            Self::Packet => "meta mark",
            Self::Connection => "ct mark",
        })
    }
}

impl Display for Assign {
    fn fmt(&self, out: &mut Formatter<'_>) -> Result {
        let Self { target, keep, source, value } = *self;
        write!(out, "{target} set ")?;
        let mut parts = Vec::new();
        let masked = |mark: MarkOf, mask: u32| match mask {
            u32::MAX => mark.to_string(),
            mask => format!("{mark} & {mask:#x}"),
        };
        parts.extend((keep != 0).then(|| masked(target, keep)));
        parts.extend(source.map(|(mark, mask)| masked(mark, mask)));
        parts.extend((value != 0 || parts.is_empty()).then(|| format!("{value:#x}")));
        out.write_str(&parts.join(" ^ "))
    }
}

impl Display for Match {
    fn fmt(&self, out: &mut Formatter<'_>) -> Result {
        match self {
            Self::Interface { side, name, prefix, negated } => {
                let side = match side {
                    Side::Input => "iifname",
                    Side::Output => "oifname",
                };
                let star = if *prefix { "*" } else { "" };
                write!(out, "{side} {}\"{name}{star}\"", not(*negated))
            }
            Self::Number { field, mask, ranges, negated } => number(out, *field, *mask, ranges, *negated),
        }
    }
}

fn not(negated: bool) -> &'static str {
    if negated { "!= " } else { "" }
}

fn number(
    out: &mut Formatter<'_>,
    field: Field,
    mask: u128,
    ranges: &[(u128, u128)],
    negated: bool,
) -> Result {
    out.write_str(field.words())?;
    out.write_char(' ')?;
    // A network: the mask is a prefix, and there is one value.
    if let (Some(width), [(first, last)]) = (field.address_bits(), ranges) {
        let length = (mask << (128 - width)).leading_ones();
        if first == last && mask != field.all() && mask.count_ones() == length {
            return write!(out, "{}{}/{length}", not(negated), field.value(*first));
        }
    }
    if mask != field.all() {
        write!(out, "& {mask:#x} ")?;
        // `ct state & established,related != 0` is how nf_tables has what people call `in`.
        if field == Field::ConnectionState && ranges == [(0, 0)] {
            return out.write_str(if negated { "!= 0" } else { "== 0" });
        }
    }
    let text = |(first, last): &(u128, u128)| match (first, last) {
        (first, last) if first == last => field.value(*first),
        (first, last) => format!("{}-{}", field.value(*first), field.value(*last)),
    };
    match ranges {
        [one] => write!(out, "{}{}", not(negated), text(one)),
        many => {
            write!(out, "{}{{ {} }}", not(negated), many.iter().map(text).collect::<Vec<_>>().join(", "))
        }
    }
}

impl Field {
    fn words(self) -> &'static str {
        match self {
            Self::Source4 => "ip saddr",
            Self::Destination4 => "ip daddr",
            Self::Source6 => "ip6 saddr",
            Self::Destination6 => "ip6 daddr",
            Self::Family => "meta nfproto",
            Self::Protocol => "meta l4proto",
            Self::SourcePort => "th sport",
            Self::DestinationPort => "th dport",
            Self::TcpFlags => "tcp flags",
            Self::Mark => "meta mark",
            Self::ConnectionMark => "ct mark",
            Self::ConnectionState => "ct state",
            Self::Direction => "ct direction",
            Self::User => "meta skuid",
            Self::Group => "meta skgid",
            Self::NetCls => "meta cgroup",
            Self::Cgroup => "socket cgroupv2",
            Self::SourceType => "fib saddr type",
            Self::DestinationType => "fib daddr type",
            Self::TransparentSocket => "socket transparent",
        }
    }

    fn address_bits(self) -> Option<u32> {
        match self {
            Self::Source4 | Self::Destination4 => Some(32),
            Self::Source6 | Self::Destination6 => Some(128),
            _ => None,
        }
    }

    /// The mask that compares the whole field.
    pub(crate) fn all(self) -> u128 {
        match self {
            Self::Source6 | Self::Destination6 => u128::MAX,
            Self::Cgroup => u64::MAX.into(),
            Self::SourcePort | Self::DestinationPort => u16::MAX.into(),
            Self::Family | Self::Protocol | Self::TcpFlags | Self::Direction | Self::TransparentSocket => {
                u8::MAX.into()
            }
            _ => u32::MAX.into(),
        }
    }

    fn value(self, value: u128) -> String {
        match (self, value) {
            (Self::Source4 | Self::Destination4, value) => {
                Ipv4Addr::from_bits(u32::try_from(value).unwrap_or(u32::MAX)).to_string()
            }
            (Self::Source6 | Self::Destination6, value) => Ipv6Addr::from_bits(value).to_string(),
            (Self::Family, 2) => "ipv4".to_owned(),
            (Self::Family, 10) => "ipv6".to_owned(),
            (Self::Protocol, 6) => "tcp".to_owned(),
            (Self::Protocol, 17) => "udp".to_owned(),
            (Self::Direction, 0) => "original".to_owned(),
            (Self::Direction, 1) => "reply".to_owned(),
            (Self::SourceType | Self::DestinationType, 2) => "local".to_owned(),
            (Self::Mark | Self::ConnectionMark | Self::TcpFlags, value) => format!("{value:#x}"),
            (_, value) => value.to_string(),
        }
    }
}

impl fmt::Display for super::Table {
    fn fmt(&self, out: &mut Formatter<'_>) -> Result {
        write!(out, "{} {}", self.family, self.name)
    }
}
