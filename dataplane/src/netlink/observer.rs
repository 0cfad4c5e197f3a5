//! Follows notifications: which generation is known in full, and whether another program changed a
//! table of ours on the way there.

use std::fmt;

use super::attributes::Malformed;
use super::event::{Event, Process};
use super::message::Message;
use crate::nft::{Family, Name};

/// A table, for which changes are reported.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TableName {
    /// The family.
    pub family: Family,
    /// The name.
    pub name: Name,
}

impl fmt::Display for TableName {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "{} {}", self.family.keyword(), self.name)
    }
}

/// Why a table may no longer be what was committed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Change {
    /// Another program changed it.
    ByOther {
        /// The table.
        table: TableName,
        /// The first change, in words.
        what: String,
        /// The process.
        process: Process,
    },
    /// Notifications were lost, so changes may have been missed.
    Unknown,
}

impl fmt::Display for Change {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::ByOther { table, what, process } => {
                write!(out, "{process} changed table {table}: {what}")
            }
            Self::Unknown => {
                out.write_str("the kernel dropped notifications, so changes may have been missed")
            }
        }
    }
}

/// Whether a generation is older than another. Generations wrap around.
fn is_before(one: u32, other: u32) -> bool {
    (1..u32::MAX / 2).contains(&other.wrapping_sub(one))
}

/// A followed table.
#[derive(Debug)]
struct Followed {
    table: TableName,
    /// The first change since it was read.
    change: Option<Change>,
    /// Whether that change was told.
    told: bool,
}

/// The state between two notifications.
#[derive(Debug)]
pub struct Observer {
    /// The port of the socket that commits: its changes are no news.
    own_port: u32,
    followed: Vec<Followed>,
    /// The last generation whose changes were all seen.
    seen: Option<u32>,
    /// The first changes of our tables in the commit that is being reported. The process follows
    /// last.
    pending: Vec<(TableName, String)>,
}

impl Observer {
    /// Ignores the changes that the socket with this port commits.
    pub fn new(own_port: u32) -> Self {
        Self { own_port, followed: Vec::new(), seen: None, pending: Vec::new() }
    }

    /// Follows this table from now on, or anew: earlier changes are known.
    pub fn follow(&mut self, table: TableName) {
        self.unfollow(&table);
        self.followed.push(Followed { table, change: None, told: false });
    }

    /// Follows this table no longer.
    pub fn unfollow(&mut self, table: &TableName) {
        self.followed.retain(|each| each.table != *table);
    }

    /// The last generation whose changes were all seen.
    pub fn seen(&self) -> Option<u32> {
        self.seen
    }

    /// Whether all changes up to a generation were seen.
    pub fn has_seen(&self, generation: u32) -> bool {
        self.seen.is_some_and(|seen| !is_before(seen, generation))
    }

    /// Starts at a generation without the notifications before it.
    pub fn start_at(&mut self, generation: u32) {
        self.seen = Some(generation);
        self.pending.clear();
    }

    /// The first change of a table since it was followed.
    pub fn change_of(&self, table: &TableName) -> Option<&Change> {
        self.followed.iter().find(|each| each.table == *table)?.change.as_ref()
    }

    /// The first change of any table since that was followed.
    pub fn change(&self) -> Option<&Change> {
        self.followed.iter().find_map(|each| each.change.as_ref())
    }

    /// A change that was not told yet.
    pub fn tell(&mut self) -> Option<Change> {
        let untold = self.followed.iter_mut().find(|each| each.change.is_some() && !each.told)?;
        untold.told = true;
        untold.change.clone()
    }

    /// Notifications were lost: any table may have changed.
    pub fn lose(&mut self) {
        self.pending.clear();
        for each in &mut self.followed {
            each.change.get_or_insert(Change::Unknown);
        }
    }

    /// Reads a notification.
    pub fn read(&mut self, message: Message<'_>) -> Result<(), Malformed> {
        let is_own = message.port == self.own_port;
        match Event::read(message)? {
            Some(Event::Committed { generation, process }) => {
                // Notifications from before a start may still come.
                if self.seen.is_none_or(|seen| is_before(seen, generation)) {
                    self.seen = Some(generation);
                }
                for (table, what) in self.pending.drain(..) {
                    if let Some(followed) = self.followed.iter_mut().find(|each| each.table == table) {
                        let process = process.clone();
                        followed.change.get_or_insert(Change::ByOther { table, what, process });
                    }
                }
            }
            Some(Event::Changed { family: Some(family), table, what }) if !is_own => {
                let changed = self.followed.iter().map(|each| &each.table);
                let mut changed = changed.filter(|own| own.family == family && own.name.as_str() == table);
                let is_new = |own: &&TableName| self.pending.iter().all(|(known, _)| known != *own);
                if let Some(own) = changed.find(is_new) {
                    self.pending.push((own.clone(), what));
                }
            }
            _ => {}
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests;
