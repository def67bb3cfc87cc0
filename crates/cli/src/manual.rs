//! The man pages, one for each command, from the table of options.

use crate::failure::Failure;
use clap::Command;
use clap_mangen::Man;
use std::io::Write;
use std::path::Path;

const SECTION: &str = "8";

/// Writes sluice.8, sluice-COMMAND.8 and sluice-COMMAND-SUBCOMMAND.8 into a directory.
pub fn write(command: Command, directory: &Path) -> Result<(), Failure> {
    let failed =
        |error: std::io::Error| Failure::system(format!("writing man pages to {}: {error}", directory.display()));
    std::fs::create_dir_all(directory).map_err(failed)?;
    let mut command = command.disable_help_subcommand(true);
    command.build();
    let mut pages = vec![("sluice".to_owned(), command.clone())];
    add_pages(&mut pages, &command, "sluice");
    for (name, page) in pages {
        let file = std::fs::File::create(directory.join(format!("{name}.{SECTION}"))).map_err(failed)?;
        let mut file = std::io::BufWriter::new(file);
        Man::new(page).title(name).section(SECTION).manual("Sluice").render(&mut file).map_err(failed)?;
        file.flush().map_err(failed)?;
    }
    Ok(())
}

/// A page for each command below one that is called so.
fn add_pages(pages: &mut Vec<(String, Command)>, command: &Command, called: &str) {
    for sub in command.get_subcommands().filter(|sub| !sub.is_hide_set()) {
        let usage = format!("{called} {}", sub.get_name());
        let name = usage.replace(' ', "-");
        pages.push((name.clone(), sub.clone().name(name.clone()).display_name(name).bin_name(usage.clone())));
        add_pages(pages, sub, &usage);
    }
}
