//! The cost of a rate to the processors that share it.
//!
//! - `cores measure [REPEATS]` measures one and two of them natively, and counts in simulated time how often up to 64 instances go to shared words. Prints
//!   CSV.
//! - `cores table RAW` prints both, and what the model of `sluice_simulator::scaling` makes of them for up to 64 processors.
//! - `cores plot RAW SVG` draws the model.

#[path = "../../processor.rs"]
mod processor;

mod contenders;
mod model;
mod plot;
mod visits;

use std::collections::BTreeMap;

type Result<T> = std::result::Result<T, Box<dyn std::error::Error>>;

/// The repeats of each measurement, by what was measured, its parameter and the number of processors.
pub type Raw = BTreeMap<(String, u32, u32), Vec<f64>>;

fn main() -> Result<()> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    match arguments.iter().map(String::as_str).collect::<Vec<_>>()[..] {
        ["measure"] => measure(7),
        ["measure", repeats] => measure(repeats.parse()?),
        ["table", raw] => {
            print!("{}", model::tables(&read(raw)?));
            Ok(())
        }
        ["plot", raw, svg] => plot::draw(&read(raw)?, svg),
        _ => Err("usage: cores measure [REPEATS] | table RAW | plot RAW SVG".into()),
    }
}

fn measure(repeats: u32) -> Result<()> {
    println!("what,parameter,processors,repeat,value");
    for repeat in 1..=repeats {
        contenders::measure(|what, parameter, processors, value| {
            println!("{what},{parameter},{processors},{repeat},{value:.3}");
        });
    }
    for frame_bytes in model::FRAMES {
        for instances in model::PROCESSORS {
            let visits = visits::per_packet(instances, model::LINK_BPS, frame_bytes);
            println!("visits,{frame_bytes},{instances},1,{visits:.6}");
        }
    }
    Ok(())
}

fn read(path: &str) -> Result<Raw> {
    let mut raw = Raw::new();
    for row in csv::ReaderBuilder::new().comment(Some(b'#')).from_path(path)?.deserialize() {
        let (what, parameter, processors, _, value): (String, u32, u32, u32, f64) = row?;
        raw.entry((what, parameter, processors)).or_default().push(value);
    }
    Ok(raw)
}
