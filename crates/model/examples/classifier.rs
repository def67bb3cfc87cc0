//! `classifier [PACKETS [SEED]]`: holds the loaded classifier against the model.

fn main() -> std::process::ExitCode {
    let mut arguments = std::env::args().skip(1).map(|word| word.parse::<u64>().expect("a number"));
    let packets = arguments.next().unwrap_or(10_000_000);
    let seed = arguments.next().unwrap_or_else(|| std::process::id().into());
    match sluice_model::compare(packets, seed) {
        Ok(summary) => {
            println!("equal, seed {seed}: {summary:?}");
            std::process::ExitCode::SUCCESS
        }
        Err(error) => {
            eprintln!("{error}");
            std::process::ExitCode::FAILURE
        }
    }
}
