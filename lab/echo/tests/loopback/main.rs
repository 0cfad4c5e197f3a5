//! The real program over loopback, in both families: the server's answers to each kind of caller,
//! the client's output, and how both end.

#![cfg(test)]

mod ask;
mod echo;
mod end;
mod hold;
mod serve;
mod survey;
