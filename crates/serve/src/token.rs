//! The token that every change needs, and reading too where `--token-file` is given.

use sluice_kernel::{Error, Result, netns, private};
use std::fs::File;
use std::io::Read;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use subtle::ConstantTimeEq;

/// The shortest token that is taken, characters.
const SHORTEST: usize = 16;
/// The longest token that is taken, characters.
const LONGEST: usize = 1024;
/// Random bytes of a token that is made here, before they are written in hexadecimal.
const RANDOM_BYTES: usize = 24;

/// A secret token, without `Debug` and `Display`.
pub struct Token(String);

impl Token {
    /// A new random token, for this run of the server.
    pub fn random() -> Result<Token> {
        let mut bytes = [0u8; RANDOM_BYTES];
        getrandom::fill(&mut bytes).map_err(|error| Error::system(format!("no random bytes for a token: {error}")))?;
        Ok(Token(bytes.iter().map(|byte| format!("{byte:02x}")).collect()))
    }

    /// Reads the first line of a file. Fails if every user of the machine may read the file.
    pub fn read(path: &Path) -> Result<Token> {
        let wrong =
            |what: String, cure: String| Error::input(format!("--token-file {}: {what}", path.display())).help(cure);
        let cannot = |error: std::io::Error| wrong(format!("it cannot be read: {error}"), make(path));
        let file = File::open(path).map_err(cannot)?;
        let about = file.metadata().map_err(cannot)?;
        if about.is_dir() {
            return Err(wrong("it is a directory".to_owned(), "name a file".to_owned()));
        }
        let mode = about.mode();
        if mode & 0o004 != 0 {
            let what = "every user of this machine can read it".to_owned();
            return Err(wrong(what, format!("chmod o= {}", path.display())));
        }
        let mut text = String::new();
        file.take(2 * LONGEST as u64)
            .read_to_string(&mut text)
            .map_err(|error| wrong(format!("it is not text: {error}"), make(path)))?;
        let token = text.lines().next().unwrap_or_default().trim();
        if !(SHORTEST..=LONGEST).contains(&token.len()) {
            let what =
                format!("its first line has {} characters, and a token has {SHORTEST} to {LONGEST}", token.len());
            return Err(wrong(what, make(path)));
        }
        if !token.bytes().all(|byte| byte.is_ascii_graphic()) {
            return Err(wrong("a token is of ASCII characters without spaces".to_owned(), make(path)));
        }
        Ok(Token(token.to_owned()))
    }

    /// Whether a text is the token, in a time that does not tell how much of it is right.
    pub fn is(&self, given: &str) -> bool {
        self.0.as_bytes().ct_eq(given.as_bytes()).into()
    }

    /// The text of the token, for the person who started the server.
    pub fn secret(&self) -> &str {
        &self.0
    }
}

/// The file where a token of this run is kept for root, until the server ends.
pub struct TokenFile(PathBuf);

impl TokenFile {
    /// Writes the token's file. Servers of other network namespaces may have the same port.
    pub fn write(token: &Token, port: u16) -> Result<TokenFile> {
        let namespace = netns::inode()?;
        let of = if netns::first_inode() == Some(namespace) { String::new() } else { format!("@{namespace}") };
        let path = sluice_kernel::run_directory().join(format!("serve-{port}{of}.token"));
        private::directory(sluice_kernel::run_directory())?;
        private::write(&path, &format!("{}\n", token.secret()))?;
        Ok(TokenFile(path))
    }

    /// Path of the file.
    pub fn path(&self) -> &Path {
        &self.0
    }
}

impl Drop for TokenFile {
    fn drop(&mut self) {
        // A token in a file that stays behind is not valid any more.
        let _ = std::fs::remove_file(&self.0);
    }
}

fn make(path: &Path) -> String {
    format!("make one: (umask 077; openssl rand -hex 24 > {})", path.display())
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::PermissionsExt;

    fn file(name: &str, text: &str, mode: u32) -> std::path::PathBuf {
        let path = std::env::temp_dir().join(format!("sluice-token-{}-{name}", std::process::id()));
        std::fs::write(&path, text).expect("writing");
        std::fs::set_permissions(&path, std::fs::Permissions::from_mode(mode)).expect("chmod");
        path
    }

    #[test]
    fn only_the_complete_token_is_accepted() {
        let path = file("good", "0123456789abcdef\n", 0o600);
        let token = Token::read(&path).expect("a token");
        assert!(token.is("0123456789abcdef"));
        for wrong in ["", "0123456789abcde", "0123456789abcdeF", "0123456789abcdef0"] {
            assert!(!token.is(wrong), "{wrong}");
        }
        std::fs::remove_file(path).expect("removing");
    }

    #[test]
    fn random_tokens_differ() {
        let (a, b) = (Token::random().expect("random"), Token::random().expect("random"));
        assert_eq!(a.secret().len(), 2 * RANDOM_BYTES);
        assert!(!a.is(b.secret()));
    }

    #[test]
    fn bad_files_are_refused_with_the_cure() {
        for (name, text, mode, what) in [
            ("open", "0123456789abcdef", 0o644, "every user"),
            ("short", "secret", 0o600, "6 characters"),
            ("empty", "", 0o600, "0 characters"),
            ("spaces", "0123456789 abcdef", 0o600, "without spaces"),
        ] {
            let path = file(name, text, mode);
            let error = Token::read(&path).err().expect(name);
            assert!(error.what.contains(what), "{}", error.what);
            assert!(error.exit_code() == 2 && error.cure.is_some());
            std::fs::remove_file(path).expect("removing");
        }
        let directory = Token::read(Path::new("/")).err().expect("a directory");
        assert!(directory.what.contains("a directory"), "{}", directory.what);
        assert!(Token::read(Path::new("/nowhere/token")).err().expect("missing").what.contains("cannot be read"));
    }
}
