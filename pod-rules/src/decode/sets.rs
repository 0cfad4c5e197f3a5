//! The elements of sets, as ranges of bytes.

use std::collections::BTreeMap;

use isp_dataplane::netlink::{Attribute, Attributes, Malformed, Message};

/// Where a set is: family, table, name.
pub(super) type SetName = (u8, String, String);

/// First and last key of each range.
pub(super) type Ranges = Vec<(Vec<u8>, Vec<u8>)>;

/// One element as listed.
struct Element {
    key: Vec<u8>,
    end: Option<Vec<u8>>,
    /// The key is the first one after a range.
    closes: bool,
}

/// All sets of a namespace.
#[derive(Default)]
pub(super) struct Sets {
    /// Whether a set has ranges.
    intervals: BTreeMap<SetName, bool>,
    elements: BTreeMap<SetName, Vec<Element>>,
}

impl Sets {
    pub(super) fn read_set(&mut self, message: Message<'_>) -> Result<(), Malformed> {
        const TABLE: u16 = 1;
        const NAME: u16 = 2;
        const FLAGS: u16 = 3;
        const INTERVAL: u32 = 4;
        let attributes = message.attributes()?;
        let name = name(message, attributes, TABLE, NAME)?;
        let flags = attributes.find(FLAGS)?.map(Attribute::be32).transpose()?.unwrap_or_default();
        self.intervals.insert(name, flags & INTERVAL != 0);
        Ok(())
    }

    pub(super) fn read_elements(&mut self, message: Message<'_>) -> Result<(), Malformed> {
        const TABLE: u16 = 1;
        const SET: u16 = 2;
        const ELEMENTS: u16 = 3;
        const KEY: u16 = 1;
        const FLAGS: u16 = 3;
        const KEY_END: u16 = 10;
        const VALUE: u16 = 1;
        const CLOSES: u32 = 1;
        let attributes = message.attributes()?;
        let found = self.elements.entry(name(message, attributes, TABLE, SET)?).or_default();
        let Some(list) = attributes.find(ELEMENTS)? else { return Ok(()) };
        for element in list.nested() {
            let fields = element?.nested();
            let value = |kind| -> Result<Option<Vec<u8>>, Malformed> {
                let Some(data) = fields.find(kind)? else { return Ok(None) };
                Ok(data.nested().find(VALUE)?.map(|value| value.value.to_vec()))
            };
            let flags = fields.find(FLAGS)?.map(Attribute::be32).transpose()?.unwrap_or_default();
            if let Some(key) = value(KEY)? {
                found.push(Element { key, end: value(KEY_END)?, closes: flags & CLOSES != 0 });
            }
        }
        Ok(())
    }

    /// The ranges of a set; `None` if there is no such set.
    pub(super) fn ranges(&self, name: &SetName) -> Option<Ranges> {
        let is_interval = *self.intervals.get(name)?;
        let elements = self.elements.get(name).map(Vec::as_slice).unwrap_or_default();
        if !is_interval || elements.iter().any(|element| element.end.is_some()) {
            let range = |element: &Element| {
                (element.key.clone(), element.end.clone().unwrap_or_else(|| element.key.clone()))
            };
            return Some(elements.iter().map(range).collect());
        }
        Some(intervals(elements))
    }
}

/// Ranges of a set that lists where each begins and where it is over.
fn intervals(elements: &[Element]) -> Ranges {
    let mut sorted: Vec<&Element> = elements.iter().collect();
    sorted.sort_by_key(|element| (&element.key, !element.closes));
    let mut ranges = Ranges::new();
    let mut open: Option<&[u8]> = None;
    for element in sorted {
        if let Some(first) = open.take() {
            ranges.push((first.to_vec(), before(&element.key)));
        }
        open = (!element.closes).then_some(&element.key);
    }
    ranges.extend(open.map(|first| (first.to_vec(), vec![u8::MAX; first.len()])));
    ranges
}

/// The number before, in network byte order.
fn before(key: &[u8]) -> Vec<u8> {
    let mut key = key.to_vec();
    for byte in key.iter_mut().rev() {
        let borrows = *byte == 0;
        *byte = byte.wrapping_sub(1);
        if !borrows {
            break;
        }
    }
    key
}

fn name(
    message: Message<'_>,
    attributes: Attributes<'_>,
    table: u16,
    set: u16,
) -> Result<SetName, Malformed> {
    let text = |kind| attributes.require(kind)?.text().map(str::to_owned);
    Ok((message.family()?, text(table)?, text(set)?))
}
