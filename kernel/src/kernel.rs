//! The connection to the kernel that a program keeps.

mod committing;
mod following;

use isp_dataplane::netlink::{Batch, Ownership, TableId, TableName, creation};
use isp_dataplane::nft::{Element, Family, Name, Operation, Set, Table};
use thiserror::Error;

use crate::commit::CommitError;
use crate::probe::{self, Capabilities, ProbeError};
use crate::read::{self, Found, ReadError};
use crate::socket::{Socket, SocketError};
use crate::watch::Watch;

/// How often a transaction is tried while other programs commit.
const ATTEMPTS: u32 = 20;

/// An open connection. Tables with [`Ownership::Exclusive`] belong to it until it is dropped; then
/// they stay without an owner.
pub struct Kernel {
    socket: Socket,
    watch: Watch,
    ownership: Ownership,
}

impl Kernel {
    /// Opens the sockets. Tables are shared with other programs until [`Kernel::own_tables`].
    pub fn open() -> Result<Self, SocketError> {
        let mut socket = Socket::open()?;
        let mut watch = Watch::open(socket.port())?;
        watch.observer.start_at(read::generation(&mut socket)?);
        Ok(Self { socket, watch, ownership: Ownership::Shared })
    }

    /// Finds out whether the kernel takes these tables, and whether it lets this program own them.
    /// Changes nothing.
    pub fn probe(&mut self, tables: &[Table]) -> Result<Capabilities, ProbeError> {
        probe::probe(&mut self.socket, tables)
    }

    /// Owns the tables that are loaded or adopted from now on, if [`Capabilities::can_own`].
    ///
    /// No other program can change them while this one runs, and they stay when it ends. `nft`
    /// before 1.1 then lists them with a line `flags` that it cannot read, so a saved ruleset does
    /// not load.
    pub fn own_tables(&mut self) {
        self.ownership = Ownership::Exclusive;
    }

    /// Reads a table and compares it with the wanted one. From now on, changes by others are
    /// reported.
    pub fn read(&mut self, wanted: &Table) -> Result<Found, ReadError> {
        for _ in 0..ATTEMPTS {
            self.follow_anew([wanted])?;
            let found = read::table(&mut self.socket, wanted, self.ownership)?;
            self.settle()?;
            if let (Some(found), None) = (found, self.watch.observer.change_of(&table_name(wanted))) {
                return Ok(found);
            }
        }
        Err(SocketError::Interrupted { attempts: ATTEMPTS }.into())
    }

    /// Reads the elements of a set of a table, as far as they exist.
    pub fn elements(&mut self, table: &Table, set: &Set) -> Result<Vec<Element>, SocketError> {
        let found = read::elements(&mut self.socket, table, set)?;
        Ok(found.map(|(elements, _)| elements).unwrap_or_default())
    }

    /// Becomes the owner of tables that were read as wanted, and that an earlier process left
    /// behind.
    pub fn adopt(&mut self, tables: &[&Table]) -> Result<(), CommitError> {
        if self.ownership == Ownership::Shared {
            return Ok(());
        }
        let mut batch = Batch::new();
        for table in tables {
            batch.apply(&self.id(table), &[Operation::AddTable]);
        }
        self.commit(&batch)
    }

    /// Replaces tables as a whole, in one transaction: packets see the old ones or the new ones.
    pub fn load(&mut self, tables: &[(&Table, &[Element])]) -> Result<(), LoadError> {
        self.commit_anyway(&tables.iter().map(|(table, _)| *table), |kernel| {
            let mut batch = Batch::new();
            for (table, elements) in tables {
                let id = kernel.id(table);
                if read::exists(&mut kernel.socket, table)? {
                    batch.apply(&id, &[Operation::DeleteTable]);
                }
                batch.apply(&id, &creation(table));
                batch.add_elements(&id, table, elements);
            }
            Ok(batch)
        })
    }

    /// Deletes tables, as far as they exist.
    pub fn unload(&mut self, tables: &[&Table]) -> Result<(), LoadError> {
        self.commit_anyway(&tables.iter().copied(), |kernel| {
            let mut batch = Batch::new();
            for table in tables {
                if read::exists(&mut kernel.socket, table)? {
                    batch.apply(&kernel.id(table), &[Operation::DeleteTable]);
                }
            }
            Ok(batch)
        })?;
        for table in tables {
            self.watch.observer.unfollow(&table_name(table));
        }
        Ok(())
    }

    /// Commits a batch that depends only on whether the tables exist. Decides again if they
    /// changed.
    fn commit_anyway<'a>(
        &mut self,
        tables: &(impl Iterator<Item = &'a Table> + Clone),
        decide: impl Fn(&mut Self) -> Result<Batch, ReadError>,
    ) -> Result<(), LoadError> {
        for _ in 0..ATTEMPTS {
            self.follow_anew(tables.clone())?;
            let batch = decide(self)?;
            match self.commit(&batch) {
                Err(CommitError::Overtaken(_)) => {}
                other => return Ok(other?),
            }
        }
        Err(CommitError::Busy { attempts: ATTEMPTS }.into())
    }

    /// The table as operations of a batch refer to it.
    pub fn id(&self, table: &Table) -> TableId {
        self.id_of(table.family, &table.name)
    }

    /// The table with this family and name.
    pub fn id_of(&self, family: Family, name: &Name) -> TableId {
        TableId { family, name: name.clone(), ownership: self.ownership }
    }
}

fn table_name(table: &Table) -> TableName {
    TableName { family: table.family, name: table.name.clone() }
}

/// Why tables could not be replaced.
#[derive(Debug, Error)]
pub enum LoadError {
    /// They could not be read.
    #[error(transparent)]
    Read(#[from] ReadError),
    /// The transaction failed.
    #[error(transparent)]
    Commit(#[from] CommitError),
}

impl From<SocketError> for LoadError {
    fn from(error: SocketError) -> Self {
        Self::Commit(error.into())
    }
}
