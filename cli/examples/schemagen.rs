//! Writes the JSON Schemas of the output for scripts to a directory, one file per command: `cargo
//! run -p isp-cli --example schemagen -- docs/schemas`.

use std::{env, error::Error, fs, path::PathBuf};

fn main() -> Result<(), Box<dyn Error>> {
    let directory = PathBuf::from(env::args_os().nth(1).ok_or("usage: schemagen <directory>")?);
    fs::create_dir_all(&directory)?;
    for (command, schema) in isp_cli::schema::schemas() {
        let file = directory.join(format!("{command}.json"));
        fs::write(&file, serde_json::to_string_pretty(&schema)? + "\n")?;
        println!("{}", file.display());
    }
    Ok(())
}
