//! `sluice serve`: the web page and the metrics.

use crate::args::serve::Serve;
use crate::failure::Failure;
use crate::terminal;
use sluice_serve::{Files, Options};

pub fn run(args: &Serve) -> Result<(), Failure> {
    let tls = args.tls_cert.clone().zip(args.tls_key.clone()).map(|(cert, key)| Files { cert, key });
    let options = Options { listen: args.listen.clone(), token_file: args.token_file.clone(), tls };
    terminal::survive_readers_that_go();
    let ready = |place: &str| terminal::say(&format!("Serving at {place}\nCtrl-C ends it.\n"));
    Ok(sluice_serve::run(&options, ready)?)
}
