//! The real program over loopback, in both families: what a server tells each kind of caller, what the client
//! prints, and how both end.

#![cfg(test)]

mod ask;
mod echo;
mod end;
mod hold;
mod serve;
