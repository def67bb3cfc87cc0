//! The sources of the lab's files, and messages about their errors.

use std::fs;
use std::ops::Range;
use std::path::{Path, PathBuf};

use include_dir::{Dir, include_dir};
use serde::Deserialize;
use serde::de::DeserializeOwned;

use sluice_error::{Error, Kind, Result};

static BUILT_IN: Dir = include_dir!("$CARGO_MANIFEST_DIR/../../lab");

/// The kinds of files.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Folder {
    /// The owners of the bottleneck.
    Contenders,
    /// The pairings of scenarios and contenders.
    Plans,
    /// The traffic.
    Scenarios,
    /// The hosts and links.
    Topologies,
}

/// A file's text and its name in messages.
#[derive(Debug, Clone, PartialEq, serde::Serialize, Deserialize)]
pub struct Source {
    /// The name in results.
    pub name: String,
    /// The text.
    pub text: String,
    /// The path of the file; none for a built-in one.
    pub path: Option<PathBuf>,
    /// Texts of the files that this one names, such as policies, by name.
    #[serde(default, rename = "beside")]
    pub attached: Vec<(String, String)>,
}

impl Folder {
    /// The folder's name in `lab/`, and in messages.
    pub fn name(self) -> &'static str {
        match self {
            Folder::Contenders => "contenders",
            Folder::Plans => "plans",
            Folder::Scenarios => "scenarios",
            Folder::Topologies => "topologies",
        }
    }

    /// The singular of the folder's name.
    pub fn one(self) -> &'static str {
        match self {
            Folder::Contenders => "contender",
            Folder::Plans => "plan",
            Folder::Scenarios => "scenario",
            Folder::Topologies => "topology",
        }
    }
}

/// The names of the built-in files of a folder, in order.
pub fn names(folder: Folder) -> Vec<String> {
    let files = BUILT_IN.get_dir(folder.name()).into_iter().flat_map(Dir::files);
    let mut names: Vec<String> =
        files.filter_map(|file| Some(file.path().file_name()?.to_str()?.strip_suffix(".toml")?.to_owned())).collect();
    names.sort();
    names
}

/// A file by its path, which ends in ".toml", or a built-in one by its name.
pub fn read(folder: Folder, name: &str) -> Result<Source> {
    if name.ends_with(".toml") || name.contains('/') {
        return file(name);
    }
    match built_in(folder, &format!("{name}.toml")) {
        Some(text) => Ok(Source { name: name.to_owned(), text, path: None, attached: Vec::new() }),
        None => Err(Error::new(Kind::Input, format!("there is no {} \"{name}\"", folder.one())).help(format!(
            "{} are built in; a file of your own is named by its path, such as ./{name}.toml",
            names(folder).join(", ")
        ))),
    }
}

/// Reads a user's file.
pub fn file(name: &str) -> Result<Source> {
    let text = text_of(name).map_err(|why| Error::new(Kind::Input, format!("cannot read {name}: {why}")))?;
    let stem = Path::new(name).file_stem().unwrap_or_default().to_string_lossy().into_owned();
    Ok(Source { name: stem, text, path: Some(PathBuf::from(name)), attached: Vec::new() })
}

/// Reads a file; a path that is no file, or one of more than 1 MiB, is refused before it is read.
fn text_of(name: &str) -> std::result::Result<String, String> {
    const MAX_BYTES: u64 = 1 << 20;
    let about = fs::metadata(name).map_err(|e| e.to_string())?;
    if !about.is_file() || about.len() > MAX_BYTES {
        return Err("it is no file of at most 1 MiB".to_owned());
    }
    fs::read_to_string(name).map_err(|e| e.to_string())
}

/// A message of the parser, in the words of other messages.
fn in_words(message: &str) -> String {
    let unknown = message.strip_prefix("unknown field `").and_then(|rest| rest.split_once('`'));
    let missing = message.strip_prefix("missing field `").and_then(|rest| rest.split_once('`'));
    match (unknown, missing) {
        (Some((key, rest)), _) => {
            let keys = rest.trim_start_matches(", expected one of ").trim_start_matches(", expected ").replace('`', "");
            format!("there is no key \"{key}\": the keys are {keys}")
        }
        (_, Some((key, _))) => format!("the key \"{key}\" is missing"),
        _ => message.to_owned(),
    }
}

fn built_in(folder: Folder, file: &str) -> Option<String> {
    BUILT_IN.get_file(format!("{}/{file}", folder.name()))?.contents_utf8().map(str::to_owned)
}

impl Source {
    /// Parses the text as TOML of type `T`.
    pub fn parse<T: DeserializeOwned>(&self) -> Result<T> {
        toml::from_str(&self.text).map_err(|e| {
            // The line tells which key is wrong.
            let line =
                e.span().and_then(|at| self.text.lines().nth(self.line(at.start) - 1)).unwrap_or_default().trim();
            let place = if line.is_empty() { String::new() } else { format!(", in `{line}`") };
            let cure = "lab/README.md explains the keys, and sluice lab show NAME prints a good file";
            self.bad(e.span(), &format!("{}{place}", in_words(e.message().trim_end())), cure)
        })
    }

    /// The place of a key in the table that has a place in it; none, if the key has no line of its own there.
    pub fn key(&self, inside: usize, key: &str) -> Option<Range<usize>> {
        let (mut found, mut at) = (None, 0);
        for line in self.text.split_inclusive('\n') {
            let text = line.trim_start();
            if text.starts_with('[') {
                if at > inside {
                    break;
                }
                found = None;
            }
            let rest = text.strip_prefix(key).map(str::trim_start);
            if found.is_none() && rest.is_some_and(|rest| rest.starts_with('=')) {
                let start = at + line.len() - text.len();
                found = Some(start..start + key.len());
            }
            at += line.len();
        }
        found
    }

    /// The place where the file first has this text.
    pub fn text(&self, text: &str) -> Option<Range<usize>> {
        self.text.find(text).map(|start| start..start + text.len())
    }

    /// A file that this one names: next to it, else built in.
    pub fn sibling(&self, folder: Folder, file: &str) -> Option<String> {
        let own = self.attached.iter().find(|(name, _)| name == file).map(|(_, text)| text.clone());
        let on_disk = || fs::read_to_string(self.path.as_ref()?.parent()?.join(file)).ok();
        own.or_else(on_disk).or_else(|| built_in(folder, file))
    }

    /// Adds a file that this one names.
    pub fn attach(&mut self, file: &str, text: String) {
        self.attached.retain(|(name, _)| name != file);
        self.attached.push((file.to_owned(), text));
    }

    /// The line of a byte offset, from 1.
    fn line(&self, byte: usize) -> usize {
        1 + self.text[..byte.min(self.text.len())].matches('\n').count()
    }

    /// An error at a place of this file.
    pub fn bad(&self, at: Option<Range<usize>>, what: &str, cure: &str) -> Error {
        let file = self
            .path
            .as_ref()
            .map_or_else(|| format!("{}.toml (built in)", self.name), |path| path.display().to_string());
        let line = at.map(|at| self.line(at.start));
        let place = line.map_or(file.clone(), |line| format!("{file}:{line}"));
        let error = Error::new(Kind::Input, format!("{place}: {}", what.trim_end()));
        if cure.is_empty() { error } else { error.help(cure) }
    }
}

#[cfg(test)]
mod tests {
    use crate::format::fixture::source;

    #[test]
    fn keys_are_found_in_their_table() {
        let source =
            source("it", "rate = 1\n[[load]]\n  rate = 2\nname = \"a\"\n[[load]]\nname = \"b\"\nrate=3\nrates = 4\n");
        let line = |inside: &str, key: &str| {
            let inside = source.text(inside).expect(inside);
            source.key(inside.start, key).map(|at| source.line(at.start))
        };
        assert_eq!(
            (line("rate = 1", "rate"), line("\"a\"", "rate"), line("\"b\"", "rate")),
            (Some(1), Some(3), Some(7))
        );
        assert_eq!((line("\"a\"", "rates"), line("\"b\"", "rates")), (None, Some(8)));
    }
}
