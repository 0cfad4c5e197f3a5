//! Messages to and from the browser.

use std::io::{BufRead, BufReader, Write};
use std::process::{ChildStdin, ChildStdout};
use std::sync::mpsc::{Receiver, channel};
use std::time::Duration;

use serde_json::{Value, json};

/// It only bounds a test that fails.
const LIMIT: Duration = Duration::from_mins(3);

/// Both directions of the protocol.
pub(super) struct Pipe {
    to: ChildStdin,
    from: Receiver<Value>,
    last: u64,
    /// Events that nobody has taken yet.
    events: Vec<Value>,
}

impl Pipe {
    pub(super) fn new(to: ChildStdin, from: ChildStdout) -> Self {
        let (sender, receiver) = channel();
        std::thread::spawn(move || {
            let mut from = BufReader::new(from);
            let mut message = Vec::new();
            while from.read_until(0, &mut message).is_ok_and(|read| read > 0) {
                message.pop();
                let parsed = serde_json::from_slice(&message).unwrap();
                message.clear();
                if sender.send(parsed).is_err() {
                    return;
                }
            }
        });
        Self { to, from: receiver, last: 0, events: Vec::new() }
    }

    /// Sends a command and returns its number.
    pub(super) fn send(&mut self, session: Option<&str>, method: &str, params: &Value) -> u64 {
        self.last += 1;
        let mut message = json!({"id": self.last, "method": method, "params": params});
        if let Some(session) = session {
            message["sessionId"] = json!(session);
        }
        // A browser that has ended is noticed by the next answer that does not come.
        let _ = self.to.write_all(format!("{message}\0").as_bytes()).and_then(|()| self.to.flush());
        self.last
    }

    /// Sends a command and returns its result.
    pub(super) fn call(&mut self, session: Option<&str>, method: &str, params: &Value) -> Value {
        let number = self.send(session, method, params);
        loop {
            let mut message = self.receive(method);
            if message["id"] == json!(number) {
                assert!(message.get("error").is_none(), "{method}: {}", message["error"]);
                return message["result"].take();
            }
            self.events.push(message);
        }
    }

    /// Waits for an event like this.
    pub(super) fn wait(&mut self, what: &str, is_it: impl Fn(&Value) -> bool) {
        while !self.events.iter().any(&is_it) {
            let message = self.receive(what);
            self.events.push(message);
        }
    }

    /// The events so far.
    pub(super) fn events(&self) -> &[Value] {
        &self.events
    }

    fn receive(&self, what: &str) -> Value {
        let received = self.from.recv_timeout(LIMIT);
        received.unwrap_or_else(|error| panic!("the browser says nothing about {what}: {error}"))
    }
}
