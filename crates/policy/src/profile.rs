//! Finding a policy by the path of its file, or by the name of a built-in or installed profile.

use crate::diagnostic::Diagnostics;
use crate::network::tables;
use crate::parse::parse_file_with;
use crate::resolved::Context;
use crate::set::PolicyFile;
use crate::source::Source;
use crate::suggest;
use std::collections::BTreeSet;
use std::fmt;
use std::fs::File;
use std::io::{self, Read};
use std::os::unix::fs::FileTypeExt;
use std::path::{Path, PathBuf};

/// The profiles that are built into the program.
const BUILT_IN: &[(&str, &str)] = &[
    ("default", include_str!("../../../policies/default.json")),
    ("gaming", include_str!("../../../policies/gaming.json")),
    ("server", include_str!("../../../policies/server.json")),
];

/// The directories of profiles, after `$SLUICE_POLICY_DIR` and before the built-in profiles.
const DIRECTORIES: &[&str] =
    &["/etc/sluice/policies", "/usr/share/sluice/policies", "/usr/local/share/sluice/policies"];

/// The largest size of a policy file, bytes. The largest useful policy is far smaller.
const MAX_FILE_BYTES: u64 = 4 << 20;

/// The reason why no policy was loaded.
#[derive(Debug)]
pub enum LoadError {
    /// The profile does not exist.
    UnknownProfile {
        /// The name of the profile.
        name: String,
        /// The names of all profiles.
        known: Vec<String>,
    },
    /// The file cannot be read.
    Unreadable {
        /// The path of the file.
        path: PathBuf,
        /// The cause.
        error: io::Error,
    },
    /// The policy is refused.
    Invalid(Diagnostics),
}

impl fmt::Display for LoadError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            LoadError::UnknownProfile { name, known } => {
                let names: Vec<&str> = known.iter().map(String::as_str).collect();
                writeln!(f, "error: there is no profile \"{name}\"")?;
                if let Some(near) = suggest::nearest(name, &names) {
                    writeln!(f, "  = help: did you mean \"{near}\"?")?;
                }
                writeln!(f, "  = help: profiles are: {}", names.join(", "))?;
                writeln!(f, "  = help: a file is named with its path or its .json, as in ./{name}")
            }
            LoadError::Unreadable { path, error } => {
                writeln!(f, "error: cannot read the policy {}: {error}", path.display())?;
                match error.kind() {
                    io::ErrorKind::NotFound => {
                        writeln!(f, "  = help: check the path; a profile is named without path and without .json")
                    }
                    io::ErrorKind::WouldBlock => {
                        writeln!(
                            f,
                            "  = help: write the policy to a file, or pipe it into the command and name /dev/stdin"
                        )
                    }
                    io::ErrorKind::PermissionDenied => writeln!(f, "  = help: check the permissions of the file"),
                    _ => Ok(()),
                }
            }
            LoadError::Invalid(diagnostics) => diagnostics.fmt(f),
        }
    }
}

impl std::error::Error for LoadError {}

/// Loads a policy or a set of them. A name with neither `/` nor `.json` is that of a profile, looked up in
/// `$SLUICE_POLICY_DIR`, `/etc/sluice/policies`, `/usr/share/sluice/policies`, `/usr/local/share/sluice/policies` and among
/// the built-in profiles, in this order; everything else is a file.
pub fn load(path_or_profile: &str) -> Result<(Source, PolicyFile), LoadError> {
    load_from(path_or_profile, &directories())
}

/// Loads a policy or a set of them for a link and an engine: see [`crate::parse_file_for`].
pub fn load_for(path_or_profile: &str, context: &Context) -> Result<(Source, PolicyFile), LoadError> {
    let source = find(path_or_profile, &directories())?;
    let file = read_with_tables(&source, Some(context))?;
    Ok((source, file))
}

/// The names of all profiles that [`load`] finds, sorted.
pub fn profiles() -> Vec<String> {
    profiles_in(&directories())
}

fn directories() -> Vec<PathBuf> {
    let own = std::env::var_os("SLUICE_POLICY_DIR").filter(|dir| !dir.is_empty());
    own.map(PathBuf::from).into_iter().chain(DIRECTORIES.iter().map(PathBuf::from)).collect()
}

fn load_from(path_or_profile: &str, directories: &[PathBuf]) -> Result<(Source, PolicyFile), LoadError> {
    let source = find(path_or_profile, directories)?;
    let file = read_with_tables(&source, None)?;
    Ok((source, file))
}

/// Reads the policy and the tables beside its file.
fn read_with_tables(source: &Source, context: Option<&Context>) -> Result<PolicyFile, LoadError> {
    let beside = tables::beside(Path::new(source.name()));
    parse_file_with(source, context, &beside).map_err(LoadError::Invalid)
}

fn find(path_or_profile: &str, directories: &[PathBuf]) -> Result<Source, LoadError> {
    if path_or_profile.contains('/') || path_or_profile.ends_with(".json") {
        read(Path::new(path_or_profile))
    } else {
        profile(path_or_profile, directories)
    }
}

fn profile(name: &str, directories: &[PathBuf]) -> Result<Source, LoadError> {
    for directory in directories {
        match read(&directory.join(format!("{name}.json"))) {
            Err(LoadError::Unreadable { error, .. }) if error.kind() == io::ErrorKind::NotFound => {}
            found => return found,
        }
    }
    match BUILT_IN.iter().find(|(known, _)| *known == name) {
        Some((_, text)) => Ok(Source::new(format!("<built in>/{name}.json"), *text)),
        None => Err(LoadError::UnknownProfile { name: name.into(), known: profiles_in(directories) }),
    }
}

fn profiles_in(directories: &[PathBuf]) -> Vec<String> {
    let mut names: BTreeSet<String> = BUILT_IN.iter().map(|(name, _)| name.to_string()).collect();
    for entry in directories.iter().filter_map(|directory| directory.read_dir().ok()).flatten().flatten() {
        let file = entry.file_name();
        let name = file.to_str().and_then(|file| file.strip_suffix(".json"));
        // The schema is next to the profiles.
        names.extend(name.filter(|name| !name.ends_with(".schema")).map(String::from));
    }
    names.into_iter().collect()
}

fn read(path: &Path) -> Result<Source, LoadError> {
    let unreadable = |error| LoadError::Unreadable { path: path.into(), error };
    if is_named_pipe(path) {
        let what = "it is a named pipe, which would be waited for until another program writes to it";
        return Err(unreadable(io::Error::new(io::ErrorKind::WouldBlock, what)));
    }
    let mut bytes = Vec::new();
    let file = File::open(path).map_err(unreadable)?;
    file.take(MAX_FILE_BYTES + 1).read_to_end(&mut bytes).map_err(unreadable)?;
    if bytes.len() as u64 > MAX_FILE_BYTES {
        let what = format!("it is larger than {} MiB, so it is no policy", MAX_FILE_BYTES >> 20);
        return Err(unreadable(io::Error::new(io::ErrorKind::InvalidData, what)));
    }
    let text = String::from_utf8(bytes).map_err(|error| {
        let offset = error.utf8_error().valid_up_to();
        let line = error.as_bytes()[..offset].iter().filter(|&&byte| byte == b'\n').count() + 1;
        let what = format!("it is not UTF-8 text (line {line}, byte {offset})");
        unreadable(io::Error::new(io::ErrorKind::InvalidData, what))
    })?;
    // Some editors begin a file with a byte order mark.
    let text = text.strip_prefix('\u{feff}').unwrap_or(&text);
    Ok(Source::new(path.display().to_string(), text))
}

/// Whether a path leads to a FIFO of the file system. The pipes below /dev and /proc, as of `<(...)`, have their writers already.
fn is_named_pipe(path: &Path) -> bool {
    let has_writer = path.starts_with("/dev") || path.starts_with("/proc");
    !has_writer && path.metadata().is_ok_and(|about| about.file_type().is_fifo())
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;

    const MINIMAL: &str = r#"{ "scheduler": "deficit_round_robin", "classes": [{ "id": 0 }] }"#;

    fn scratch(name: &str) -> PathBuf {
        let directory = std::env::temp_dir().join(format!("sluice-policy-{}-{name}", std::process::id()));
        fs::create_dir_all(&directory).unwrap();
        directory
    }

    #[test]
    fn built_in_profiles_load_without_any_directory() {
        for (name, _) in BUILT_IN {
            let (source, file) = load_from(name, &[]).unwrap_or_else(|error| panic!("{error}"));
            assert_eq!(file.one().unwrap().name, *name);
            assert_eq!(source.name(), format!("<built in>/{name}.json"));
        }
    }

    #[test]
    fn earlier_directories_win_over_later_ones_and_the_built_in() {
        let (a, b) = (scratch("a"), scratch("b"));
        fs::write(b.join("gaming.json"), MINIMAL).unwrap();
        fs::write(b.join("mine.json"), format!("\u{feff}{MINIMAL}")).unwrap();
        let dirs = [a.clone(), b.clone()];
        let (source, _) = load_from("gaming", &dirs).unwrap();
        assert_eq!(source.name(), b.join("gaming.json").display().to_string());
        assert_eq!(load_from("mine", &dirs).unwrap().1.one().unwrap().name, "mine");
        assert_eq!(profiles_in(&dirs), ["default", "gaming", "mine", "server"]);
        fs::remove_dir_all(a).unwrap();
        fs::remove_dir_all(b).unwrap();
    }

    #[test]
    fn unknown_profile_lists_known_ones() {
        let error = load_from("gamign", &[]).unwrap_err().to_string();
        assert_eq!(
            error,
            "error: there is no profile \"gamign\"\n  \
             = help: did you mean \"gaming\"?\n  \
             = help: profiles are: default, gaming, server\n  \
             = help: a file is named with its path or its .json, as in ./gamign\n"
        );
    }

    #[test]
    fn unreadable_file_names_the_cause() {
        let directory = scratch("c");
        let file = directory.join("latin.json");
        fs::write(&file, b"{\n\"name\": \"\xe4\"}").unwrap();
        let error = load_from(file.to_str().unwrap(), &[]).unwrap_err().to_string();
        assert!(error.contains("not UTF-8 text (line 2, byte 11)"), "{error}");
        let error = load_from("/nowhere/x.json", &[]).unwrap_err().to_string();
        assert!(error.starts_with("error: cannot read the policy /nowhere/x.json: "), "{error}");
        let error = load_from("/dev/zero", &[]).unwrap_err().to_string();
        assert!(error.contains("larger than 4 MiB"), "{error}");
        fs::remove_dir_all(directory).unwrap();
    }

    #[test]
    fn tables_stand_beside_the_policy() {
        let directory = scratch("tables");
        fs::create_dir_all(directory.join("tables")).unwrap();
        let file = directory.join("network.json");
        let text = r#"{ "subscriber_side": ["eth1"], "sites": "tables/sites.json", "subscribers": "tables/all.csv" }"#;
        fs::write(&file, text).unwrap();
        fs::write(directory.join("tables/sites.json"), r#"{ "north": {} }"#).unwrap();
        fs::write(directory.join("tables/all.csv"), "name,addresses,plan,site\na,192.0.2.1,,north\n").unwrap();
        let path = file.to_str().unwrap();
        match load_from(path, &[]).unwrap_or_else(|error| panic!("{error}")).1 {
            PolicyFile::One(policy) => {
                // The tables are not asked again.
                let alone = crate::parse(&Source::new("alone", crate::written(&policy))).unwrap();
                assert_eq!(alone, *policy);
                assert_eq!(policy.network.expect("a network").subscribers.subscribers[0].parent, Some(0));
            }
            other => panic!("{other:?}"),
        }
        fs::remove_file(directory.join("tables/all.csv")).unwrap();
        let error = load_from(path, &[]).unwrap_err().to_string();
        let table = directory.join("tables/all.csv").display().to_string();
        assert!(error.contains(&format!("\"subscribers\" cannot be read: {table}: No such file")), "{error}");
        fs::remove_dir_all(directory).unwrap();
    }

    #[test]
    fn a_named_pipe_is_refused_at_once() {
        let directory = scratch("pipe");
        let pipe = directory.join("pipe.json");
        assert!(std::process::Command::new("mkfifo").arg(&pipe).status().unwrap().success());
        let path = pipe.display().to_string();
        let (sender, receiver) = std::sync::mpsc::channel();
        std::thread::spawn(move || sender.send(load_from(&path, &[]).map(drop)));
        let answer = receiver.recv_timeout(std::time::Duration::from_secs(20)).expect("an answer without a writer");
        fs::remove_dir_all(&directory).unwrap();
        let text = answer.unwrap_err().to_string();
        assert!(
            text.contains("pipe.json: it is a named pipe") && text.contains("= help: write the policy to a file"),
            "{text}"
        );
    }

    #[test]
    fn the_pipe_of_another_process_is_read() {
        let mut writer =
            std::process::Command::new("printf").arg(MINIMAL).stdout(std::process::Stdio::piped()).spawn().unwrap();
        let output = writer.stdout.take().unwrap();
        let path = format!("/dev/fd/{}", std::os::fd::AsRawFd::as_raw_fd(&output));
        assert!(load_from(&path, &[]).is_ok());
        writer.wait().unwrap();
    }
}
