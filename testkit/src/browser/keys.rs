//! Keys, as a keyboard sends them.

use serde_json::{Value, json};

/// A key.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Key {
    /// To the next element.
    Tab,
    /// To the previous element.
    ShiftTab,
    /// Presses a button.
    Enter,
    /// Closes a dialog.
    Escape,
}

impl Key {
    /// The parameters of the events for the key's way down and up.
    pub(super) fn events(self) -> [Value; 2] {
        let (name, code, modifiers) = match self {
            Self::Tab => ("Tab", 9, 0),
            Self::ShiftTab => ("Tab", 9, 8),
            Self::Enter => ("Enter", 13, 0),
            Self::Escape => ("Escape", 27, 0),
        };
        let text = if self == Self::Enter { "\r" } else { "" };
        let kind = if text.is_empty() { "rawKeyDown" } else { "keyDown" };
        [kind, "keyUp"].map(|kind| {
            let mut event = json!({
                "type": kind, "key": name, "code": name, "windowsVirtualKeyCode": code, "modifiers": modifiers,
            });
            if kind == "keyDown" {
                event["text"] = json!(text);
            }
            event
        })
    }
}
