//! A batch on its way: how much of it fits into one message, who else committed meanwhile.

use std::ops::Range;

use isp_dataplane::netlink::{Batch, Change};
use isp_dataplane::nft::{Element, Operation, Table};

use super::{ATTEMPTS, Kernel};
use crate::commit::{self, CommitError, Outcome};
use crate::read;

/// Batches above this size are committed without listening to notifications: the kernel would send
/// one for each element, and drop most of them.
const LOUD: usize = 256 * 1024;

/// Whether notifications are received during a commit.
#[derive(Clone, Copy)]
enum Listening {
    Yes,
    No,
}

impl Kernel {
    /// Commits a batch that was decided on the tables as they were read or committed last. Nothing
    /// is committed if another program changed one of them since.
    pub fn commit(&mut self, batch: &Batch) -> Result<(), CommitError> {
        if batch.is_empty() {
            return Ok(());
        }
        let starts = batch.split(self.socket.room_for(batch.frame_length()));
        if batch.byte_length() <= LOUD {
            return self.commit_parts(batch, &starts, Listening::Yes);
        }
        self.watch.drain()?;
        self.watch.leave()?;
        let result = self.commit_parts(batch, &starts, Listening::No);
        self.watch.join().map_err(CommitError::Unknown)?;
        // A commit between the last part and now went unheard.
        let seen = self.watch.observer.seen();
        let now = read::generation(&mut self.socket).map_err(CommitError::Unknown)?;
        if seen != Some(now) {
            self.watch.observer.start_at(now);
            self.watch.observer.lose();
        }
        result
    }

    /// Deletes those of the elements that still exist. Elements with a timeout end by themselves,
    /// and a transaction fails if one of its elements is missing. It is tried again in halves then.
    pub fn delete_existing(&mut self, table: &Table, elements: &[Element]) -> Result<(), CommitError> {
        if elements.is_empty() {
            return Ok(());
        }
        let operations: Vec<_> = elements.iter().cloned().map(Operation::DeleteElement).collect();
        let mut batch = Batch::new();
        batch.apply(&self.id(table), &operations);
        match (self.commit(&batch), elements) {
            (Err(CommitError::Refused(_)), [_]) => Ok(()),
            (Err(CommitError::Refused(_)), elements) => {
                let (first, second) = elements.split_at(elements.len() / 2);
                self.delete_existing(table, first)?;
                self.delete_existing(table, second)
            }
            (result, _) => result,
        }
    }

    fn commit_parts(
        &mut self,
        batch: &Batch,
        starts: &[usize],
        listening: Listening,
    ) -> Result<(), CommitError> {
        let ends = starts.iter().skip(1).copied().chain([batch.len()]);
        for (committed, (start, end)) in starts.iter().copied().zip(ends).enumerate() {
            match self.commit_part(batch, start..end, listening) {
                Err(source) if committed > 0 => {
                    let (parts, source) = (starts.len(), Box::new(source));
                    return Err(CommitError::Partial { committed, parts, source });
                }
                other => other?,
            }
        }
        Ok(())
    }

    fn commit_part(
        &mut self,
        batch: &Batch,
        places: Range<usize>,
        listening: Listening,
    ) -> Result<(), CommitError> {
        for _ in 0..ATTEMPTS {
            self.watch.drain()?;
            self.refuse_after_change()?;
            let sequence = self.socket.reserve_sequences(batch.sequences());
            let seen = self.watch.observer.seen();
            let frame = batch.frame(places.clone(), sequence, seen);
            match (commit::exchange(&mut self.socket, batch, &frame)?, listening) {
                (Outcome::Committed, Listening::Yes) => return Ok(()),
                (Outcome::Committed, Listening::No) => return self.count_own_commit(seen),
                (Outcome::Stale, Listening::Yes) => self.settle()?,
                (Outcome::Stale, Listening::No) => return Err(CommitError::Overtaken(Change::Unknown)),
            }
        }
        Err(CommitError::Busy { attempts: ATTEMPTS })
    }

    /// Our own commit advances the generation by one. Any further step was another program's.
    fn count_own_commit(&mut self, before: Option<u32>) -> Result<(), CommitError> {
        let now = read::generation(&mut self.socket).map_err(CommitError::Unknown)?;
        self.watch.observer.start_at(now);
        if before.is_none_or(|before| now.wrapping_sub(before) > 1) {
            self.watch.observer.lose();
        }
        Ok(())
    }

    /// A table that others changed has to be read or loaded again first.
    fn refuse_after_change(&self) -> Result<(), CommitError> {
        match self.watch.observer.change() {
            Some(change) => Err(CommitError::Overtaken(change.clone())),
            None => Ok(()),
        }
    }
}
