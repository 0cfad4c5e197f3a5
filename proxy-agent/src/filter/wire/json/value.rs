//! Finds the end of a JSON value while its bytes arrive. It does not validate the value; its parser
//! does.

/// A value whose end has not been found yet.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct ValueScanner {
    /// The number of objects and arrays around the next byte.
    depth: u32,
    in_string: bool,
    escaped: bool,
}

impl ValueScanner {
    /// Returns how many of these bytes belong to the value, and whether it ends with them.
    pub(super) fn take(&mut self, bytes: &[u8]) -> (usize, bool) {
        for (index, byte) in bytes.iter().enumerate() {
            if self.in_string {
                match byte {
                    _ if self.escaped => self.escaped = false,
                    b'\\' => self.escaped = true,
                    b'"' => {
                        self.in_string = false;
                        if self.depth == 0 {
                            return (index + 1, true);
                        }
                    }
                    _ => {}
                }
                continue;
            }
            match byte {
                b'"' => self.in_string = true,
                b'{' | b'[' => self.depth += 1,
                // A number or a literal ends before the next delimiter.
                b'}' | b']' | b',' | b':' if self.depth == 0 => return (index, true),
                byte if self.depth == 0 && byte.is_ascii_whitespace() => return (index, true),
                b'}' | b']' => {
                    self.depth -= 1;
                    if self.depth == 0 {
                        return (index + 1, true);
                    }
                }
                _ => {}
            }
        }
        (bytes.len(), false)
    }
}
