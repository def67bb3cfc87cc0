//! System tests: the product on the kernel that runs, with real traffic. Needs root. One at a time (--test-threads=1), since
//! they measure; in network namespaces of their own, so that they disturb no other program. `--brief` leaves out those that no
//! kernel makes a difference to, `--by-engine` of these those that run once, whatever the engine. `--part=1/2` runs every second
//! of those that can run here, from the first on, and `--part=2/2` the others.

mod browser;
mod cases;
mod command;
mod foreign;
mod frames;
mod iperf;
mod lab;
mod many_queues;
mod needs;
mod net;
mod pins;
mod policy;
mod server;
mod status;
mod suite;
mod terminal;
mod town;
mod traffic;

use cases::AlikeEverywhere;
use libtest_mimic::{Arguments, Trial};
use std::process::ExitCode;

fn main() -> ExitCode {
    let (brief, rest): (Vec<String>, _) = std::env::args().partition(|argument| argument == "--brief");
    let (by_engine, rest): (Vec<String>, _) = rest.into_iter().partition(|argument| argument == "--by-engine");
    let alike_everywhere = match (brief.is_empty(), by_engine.is_empty()) {
        (false, _) => AlikeEverywhere::None,
        (true, false) => AlikeEverywhere::ByEngine,
        (true, true) => AlikeEverywhere::All,
    };
    let (part, rest): (Vec<String>, _) =
        rest.into_iter().partition(|argument: &String| argument.starts_with("--part="));
    let part = match part.last().map(|text| Part::parse(text)) {
        Some(None) => {
            eprintln!("--part takes two numbers, as in --part=1/2");
            return ExitCode::from(2);
        }
        Some(Some(part)) => part,
        None => Part { number: 1, of: 1 },
    };
    let mut arguments = Arguments::from_iter(rest);
    if arguments.list {
        let trials = cases::all(alike_everywhere).into_iter().map(|case| Trial::test(case.name, || Ok(()))).collect();
        return libtest_mimic::run(&arguments, trials).exit_code();
    }
    if !needs::is_root() {
        eprintln!("the system tests need root: make test-native asks for it");
        return ExitCode::from(4);
    }
    // Tests share the machine's clock and processors: two at a time would measure each other.
    arguments.test_threads = Some(1);
    needs::load_modules();
    let machine = needs::Machine::probe();
    let trials = cases::all(alike_everywhere).into_iter().map(|case| case.trial(&machine)).collect();
    libtest_mimic::run(&arguments, part.of(trials)).exit_code()
}

/// The share of the tests that runs here, so that two machines can divide the work.
struct Part {
    number: usize,
    of: usize,
}

impl Part {
    /// Parses `--part=NUMBER/OF`.
    fn parse(text: &str) -> Option<Part> {
        let (number, of) = text.strip_prefix("--part=")?.split_once('/')?;
        let part = Part { number: number.parse().ok()?, of: of.parse().ok()? };
        (1..=part.of).contains(&part.number).then_some(part)
    }

    /// Runnable tests are dealt in turn; ignored ones are listed in the first part.
    fn of(&self, trials: Vec<Trial>) -> Vec<Trial> {
        let mut turn = 0;
        let mine = |trial: &Trial| {
            if trial.has_ignored_flag() {
                return self.number == 1;
            }
            turn += 1;
            turn % self.of == self.number % self.of
        };
        trials.into_iter().filter(mine).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::{AlikeEverywhere, cases};

    /// A test that was renamed would run again on kernels that leave it out, and nobody would notice.
    #[test]
    fn what_kernels_leave_out_exists() {
        let lists = [
            ("newest", AlikeEverywhere::ByEngine, include_str!("../kernels/newest")),
            ("oldest", AlikeEverywhere::None, include_str!("../kernels/oldest")),
            ("between", AlikeEverywhere::None, include_str!("../kernels/between")),
            ("processors", AlikeEverywhere::ByEngine, include_str!("../kernels/processors")),
        ];
        for (kernel, alike_everywhere, list) in lists {
            let cases = cases::all(alike_everywhere);
            let parts = list.lines().filter(|line| !line.is_empty() && !line.starts_with('#'));
            for part in parts {
                assert!(cases.iter().any(|case| case.name.contains(part)), "{kernel}: no test has {part} in its name");
            }
        }
    }
}
