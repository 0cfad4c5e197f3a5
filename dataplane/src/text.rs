//! A table as text, as `nft list` prints it and `nft -f` reads it.
//!
//! Without elements the text is byte for byte what nft 1.0.6 prints after loading it. Elements are
//! sorted here; the kernel lists them in an order of its own.

mod statement;
mod value;

use std::{
    collections::{BTreeMap, BTreeSet},
    fmt::{self, Write as _},
};

use crate::nft::{Base, Chain, DataType, Element, Family, Hook, Name, Set, Table};

pub(crate) use statement::rule;
use value::{element, fields};

/// Writes a table and its elements.
pub fn render(table: &Table, elements: &[Element]) -> String {
    let mut of_set: BTreeMap<&Name, BTreeSet<&Element>> = BTreeMap::new();
    for element in elements {
        of_set.entry(&element.set).or_default().insert(element);
    }
    let empty = BTreeSet::new();
    let mut out = format!("table {} {} {{\n", table.family.keyword(), table.name);
    let sets =
        table.sets.iter().map(|each| set(table.family, each, of_set.get(&each.name).unwrap_or(&empty)));
    let chains = table.chains.iter().map(|each| chain(table.family, each));
    out.push_str(&sets.chain(chains).collect::<Vec<_>>().join("\n"));
    out.push_str("}\n");
    out
}

fn set(family: Family, set: &Set, elements: &BTreeSet<&Element>) -> String {
    let (kind, data) = match &set.data {
        DataType::None => ("set", String::new()),
        DataType::Values(values) => ("map", format!(" : {}", fields(family, values))),
        DataType::Verdict => ("map", " : verdict".to_owned()),
    };
    let mut out = format!("\t{kind} {} {{\n\t\ttypeof {}{data}\n", set.name, fields(family, &set.key));
    let mut line = |text: fmt::Arguments<'_>| {
        // Writing to a string does not fail.
        let _ = writeln!(out, "\t\t{text}");
    };
    if let Some(size) = set.size {
        line(format_args!("size {size}"));
    }
    if set.interval {
        line(format_args!("flags interval"));
    }
    if set.dynamic {
        line(format_args!("flags dynamic,timeout"));
    }
    if !elements.is_empty() {
        let all: Vec<String> = elements.iter().map(|each| element(each)).collect();
        line(format_args!("elements = {{ {} }}", all.join(",\n\t\t\t     ")));
    }
    out.push_str("\t}\n");
    out
}

fn chain(family: Family, chain: &Chain) -> String {
    let mut out = format!("\tchain {} {{\n", chain.name);
    if let Some(base) = &chain.base {
        let _ = writeln!(
            out,
            "\t\ttype {} hook {} priority {}; policy accept;",
            base.kind.keyword(),
            base.hook.keyword(),
            priority(*base)
        );
    }
    for each in &chain.rules {
        let _ = writeln!(out, "\t\t{}", rule(family, each));
    }
    out.push_str("\t}\n");
    out
}

/// The priority of a base chain, relative to a named one nearby, if the hook has it.
fn priority(base: Base) -> String {
    let named = match base.hook {
        Hook::Prerouting => Some(("dstnat", -100)),
        Hook::Postrouting => Some(("srcnat", 100)),
        _ => None,
    };
    let everywhere = [Some(("mangle", -150)), Some(("filter", 0))];
    let near = everywhere
        .into_iter()
        .chain([named])
        .flatten()
        .find(|(_, number)| (base.priority - number).abs() <= 10);
    match near.map(|(name, number)| (name, base.priority - number)) {
        None => base.priority.to_string(),
        Some((name, 0)) => name.to_owned(),
        Some((name, offset)) if offset < 0 => format!("{name} - {}", -offset),
        Some((name, offset)) => format!("{name} + {offset}"),
    }
}

#[cfg(test)]
mod tests;
