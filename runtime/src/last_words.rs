//! The termination message of a program, which the kubelet copies into the pod's status from a file
//! in the container.

use std::fs::OpenOptions;
use std::io::Write;
use std::path::Path;

/// The default `terminationMessagePath`.
const FILE: &str = "/dev/termination-log";
/// The kubelet's limit in bytes.
const LONGEST: usize = 4096;

/// Writes the termination message, if the file exists.
pub fn leave(words: &impl ToString) {
    write(Path::new(FILE), &words.to_string());
}

fn write(file: &Path, words: &str) {
    let end = (0..=words.len().min(LONGEST)).rfind(|end| words.is_char_boundary(*end)).unwrap_or_default();
    // Outside a pod the file does not exist. That is fine, since the log has the same message.
    let _ = OpenOptions::new()
        .write(true)
        .truncate(true)
        .open(file)
        .and_then(|mut file| file.write_all(&words.as_bytes()[..end]));
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_reason_is_left_where_a_kubelet_has_put_a_file_and_nowhere_else() {
        let path = std::env::temp_dir().join(format!("last-words-{}", std::process::id()));
        write(&path, "nobody asks");
        assert!(!path.exists());
        std::fs::write(&path, "an earlier and much longer reason").unwrap();
        write(&path, "no token");
        assert_eq!(std::fs::read_to_string(&path).unwrap(), "no token");
        write(&path, &"\u{e4}".repeat(3000));
        assert_eq!(std::fs::metadata(&path).unwrap().len(), 4096);
        std::fs::remove_file(path).unwrap();
    }
}
