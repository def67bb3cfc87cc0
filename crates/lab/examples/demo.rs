//! The demo without the command line: `cargo run -p sluice-lab --example demo -- PATH-OF-SLUICE [ENGINE]`, as root.

use std::path::PathBuf;
use std::process::ExitCode;

use sluice_lab::{Options, run};

fn main() -> ExitCode {
    let mut arguments = std::env::args().skip(1);
    let sluice = arguments.next().unwrap_or_else(|| "sluice".to_owned());
    let options = Options {
        engine: arguments.next(),
        json: Some(PathBuf::from("sluice-demo.json")),
        color: std::env::var_os("NO_COLOR").is_none(),
        ..Options::new(sluice)
    };
    match run(&options) {
        Ok(report) => {
            print!("{}", report.text(options.color));
            ExitCode::SUCCESS
        }
        Err(error) => {
            eprintln!("error: {error}");
            ExitCode::from(error.exit_code())
        }
    }
}
