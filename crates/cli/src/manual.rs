//! The man pages, one for each command, from the table of options.

use crate::failure::Failure;
use clap::Command;
use clap_mangen::Man;
use roff::{Roff, roman};
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
        write_page(page, &name, &mut file).and_then(|()| file.flush()).map_err(failed)?;
    }
    Ok(())
}

/// Writes one page. Lines after the options are kept as they are in `--help`, because clap_mangen would fill them as prose.
fn write_page(page: Command, name: &str, to: &mut impl Write) -> std::io::Result<()> {
    let after = page.get_after_long_help().or(page.get_after_help()).map(ToString::to_string);
    let has_commands = page.get_subcommands().any(|sub| !sub.is_hide_set());
    let man = Man::new(page).title(name).section(SECTION).manual("Sluice");
    man.render_title(to)?;
    man.render_name_section(to)?;
    man.render_synopsis_section(to)?;
    man.render_description_section(to)?;
    man.render_options_section(to)?;
    if has_commands {
        man.render_subcommands_section(to)?;
    }
    if let Some(text) = after {
        let mut roff = Roff::new();
        roff.control("SH", ["MORE"]).control("nf", []);
        roff.text([roman(text)]).control("fi", []);
        roff.to_writer(to)?;
    }
    man.render_version_section(to)
}

/// Adds a page for a command and each of its subcommands.
fn add_pages(pages: &mut Vec<(String, Command)>, command: &Command, called: &str) {
    for sub in command.get_subcommands().filter(|sub| !sub.is_hide_set()) {
        let usage = format!("{called} {}", sub.get_name());
        let name = usage.replace(' ', "-");
        pages.push((name.clone(), sub.clone().name(name.clone()).display_name(name).bin_name(usage.clone())));
        add_pages(pages, sub, &usage);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::args::Cli;
    use clap::CommandFactory;

    #[test]
    fn examples_keep_their_lines() {
        let mut command = Cli::command();
        command.build();
        for name in ["explain", "up", "top"] {
            let sub = command.find_subcommand(name).expect("a command").clone();
            let help = sub.get_after_help().map(ToString::to_string).unwrap_or_default();
            let mut page = Vec::new();
            write_page(sub, name, &mut page).expect("written to memory");
            let page = String::from_utf8(page).expect("text").replace("\\-", "-").replace("\\*(Aq", "'");
            let page: Vec<&str> = page.lines().collect();
            let (unfilled, filled) =
                (page.iter().position(|line| *line == ".nf"), page.iter().position(|line| *line == ".fi"));
            for line in help.lines() {
                let place = page.iter().rposition(|written| *written == line);
                assert!(place > unfilled && place < filled, "{name}: {line:?} in {page:#?}");
            }
        }
    }
}
