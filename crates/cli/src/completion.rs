//! Shell completion: the script for the shell, and candidates that depend on the machine.

use crate::failure::Failure;
use clap_complete::Shell;
use clap_complete::engine::{CompletionCandidate, PathCompleter, ValueCompleter};
use clap_complete::env::Shells;
use sluice_kernel::{Interface, Record};
use std::ffi::OsStr;

/// The environment variable with which a shell's script asks this program for candidates.
pub const COMPLETE_VARIABLE: &str = "COMPLETE";

/// Prints the script that a shell reads at its start.
pub fn print(shell: Shell) -> Result<(), Failure> {
    let failed = |error: std::io::Error| Failure::system(format!("printing the completions: {error}"));
    let shells = Shells::builtins();
    let name = shell.to_string();
    let shell = shells.completer(&name).ok_or_else(|| Failure::system(format!("{name} has no completions")))?;
    shell.write_registration(COMPLETE_VARIABLE, "sluice", "sluice", "sluice", &mut std::io::stdout()).map_err(failed)
}

/// Interfaces that are not managed yet.
pub fn unmanaged(typed: &OsStr) -> Vec<CompletionCandidate> {
    let managed = managed_names();
    offered(typed, all_names().into_iter().filter(|name| !managed.contains(name)))
}

/// Managed interfaces, or all interfaces if the records cannot be read, as without root.
pub fn managed(typed: &OsStr) -> Vec<CompletionCandidate> {
    let names = managed_names();
    offered(typed, if names.is_empty() { all_names() } else { names }.into_iter())
}

/// All interfaces.
pub fn interfaces(typed: &OsStr) -> Vec<CompletionCandidate> {
    offered(typed, all_names().into_iter())
}

/// Profiles and policy files.
pub fn policies(typed: &OsStr) -> Vec<CompletionCandidate> {
    let mut found = offered(typed, sluice_policy::profiles().into_iter());
    found.extend(PathCompleter::file().complete(typed));
    found
}

/// The arguments of `apply`: a managed interface, then a policy, or a policy alone.
pub fn managed_or_policies(typed: &OsStr) -> Vec<CompletionCandidate> {
    let mut found = managed(typed);
    found.extend(policies(typed));
    found
}

fn managed_names() -> Vec<String> {
    let Ok(own) = sluice_kernel::netns::inode() else { return Vec::new() };
    let records = Record::all().unwrap_or_default();
    records.into_iter().filter(|record| record.netns == own).map(|record| record.interface).collect()
}

fn all_names() -> Vec<String> {
    Interface::names().unwrap_or_default().into_iter().filter(|name| name != "lo").collect()
}

fn offered(typed: &OsStr, names: impl Iterator<Item = String>) -> Vec<CompletionCandidate> {
    let typed = typed.to_string_lossy();
    names.filter(|name| name.starts_with(typed.as_ref())).map(CompletionCandidate::new).collect()
}

#[cfg(test)]
mod tests {
    use crate::args::Cli;
    use clap::CommandFactory;
    use std::ffi::OsString;

    /// The completions of the last of these words.
    fn offered(words: &[&str]) -> Vec<String> {
        let words: Vec<OsString> = words.iter().map(OsString::from).collect();
        let last = words.len() - 1;
        let found = clap_complete::engine::complete(&mut Cli::command(), words, last, None).expect("candidates");
        found.iter().map(|one| one.get_value().to_string_lossy().into_owned()).collect()
    }

    #[test]
    fn profiles_are_offered() {
        assert_eq!(offered(&["sluice", "up", "eth0", "--policy", "gam"]), ["gaming"]);
        assert_eq!(offered(&["sluice", "check", "serv"]), ["server"]);
        assert!(offered(&["sluice", "apply", "eth0", "d"]).contains(&"default".to_owned()));
    }
}
