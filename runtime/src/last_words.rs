//! Why a program ends, for the status of its pod: a kubelet takes it from a file that it has put into the container.

use std::fs::OpenOptions;
use std::io::Write;
use std::path::Path;

/// Where a kubelet looks, unless the container says otherwise.
const FILE: &str = "/dev/termination-log";
/// A kubelet takes no more.
const LONGEST: usize = 4096;

/// Leaves a line for the kubelet, where there is one that looks.
pub fn leave(words: &impl ToString) {
    write(Path::new(FILE), &words.to_string());
}

fn write(file: &Path, words: &str) {
    let end = (0..=words.len().min(LONGEST)).rfind(|end| words.is_char_boundary(*end)).unwrap_or_default();
    // Without a kubelet there is no file, and nobody who would miss it: the log has the same.
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
