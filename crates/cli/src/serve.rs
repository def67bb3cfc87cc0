//! `sluice serve`: the web page and the metrics.

use crate::args::serve::Serve;
use crate::failure::Failure;
use crate::terminal;
use sluice_serve::{Counting, Endpoint, Files, Options};
use std::io::IsTerminal;

pub fn run(args: &Serve) -> Result<(), Failure> {
    let tls = args.tls_cert.clone().zip(args.tls_key.clone()).map(|(cert, key)| Files { cert, key });
    let counted = args.count.iter().map(|text| counting(text)).collect::<Result<Vec<Counting>, Failure>>()?;
    let options = Options { listen: args.listen.clone(), token_file: args.token_file.clone(), tls, counted };
    terminal::ignore_sigpipe();
    let to_terminal = std::io::stdout().is_terminal();
    Ok(sluice_serve::run(&options, |endpoint| terminal::say(&ready_message(endpoint, to_terminal)))?)
}

/// An interface and its key, of `--count`: the key stands behind the last colon.
fn counting(text: &str) -> Result<Counting, Failure> {
    let (interface, key) = text.rsplit_once(':').filter(|(interface, _)| !interface.is_empty()).ok_or_else(|| {
        Failure::input(&format!("--count {text}: no interface and key"), "write them with a colon: eth0:proto,class")
    })?;
    if key.is_empty() {
        return Err(Failure::input(
            &format!("--count {text}: no key"),
            "write up to three of proto, class, dscp and verdict: eth0:proto,class",
        ));
    }
    Ok(Counting { interface: interface.to_owned(), by: crate::count::key::parse("--count", key)? })
}

/// The message of a ready server. The secret appears only on a terminal, since a log has other readers.
fn ready_message(endpoint: &Endpoint, to_terminal: bool) -> String {
    let url = endpoint.with_token.as_ref().filter(|_| to_terminal).unwrap_or(&endpoint.url);
    let token = endpoint.token_file.as_ref().map(|file| format!("The token for changes is in {}\n", file.display()));
    format!("Serving at {url}\n{}Ctrl-C ends it.\n", token.unwrap_or_default())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn log_message_has_no_token() {
        let endpoint = Endpoint {
            url: "http://127.0.0.1:8080/".to_owned(),
            with_token: Some("http://127.0.0.1:8080/#token=secret".to_owned()),
            token_file: Some("/run/sluice/serve-8080.token".into()),
        };
        assert!(ready_message(&endpoint, true).starts_with("Serving at http://127.0.0.1:8080/#token=secret\n"));
        let logged = ready_message(&endpoint, false);
        assert!(!logged.contains("secret") && logged.contains("is in /run/sluice/serve-8080.token\n"), "{logged}");
    }
}
