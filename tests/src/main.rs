//! System tests: the product on the kernel that runs, with real traffic. Needs root. One at a time (--test-threads=1), since
//! they measure; in network namespaces of their own, so that they disturb nobody. `--brief` leaves out those that test commands rather
//! than a kernel.

mod browser;
mod cases;
mod command;
mod foreign;
mod frames;
mod iperf;
mod lab;
mod needs;
mod net;
mod pins;
mod policy;
mod server;
mod status;
mod suite;
mod terminal;
mod traffic;

use libtest_mimic::{Arguments, Trial};
use std::process::ExitCode;

fn main() -> ExitCode {
    let (brief, rest): (Vec<String>, _) = std::env::args().partition(|argument| argument == "--brief");
    let mut arguments = Arguments::from_iter(rest);
    if arguments.list {
        let trials = suite::all(brief.is_empty()).into_iter().map(|case| Trial::test(case.name, || Ok(()))).collect();
        return libtest_mimic::run(&arguments, trials).exit_code();
    }
    if !needs::is_root() {
        eprintln!("the system tests need root: make test-native asks for it");
        return ExitCode::from(4);
    }
    // They share the machine's clock and processors: two at a time would measure each other.
    arguments.test_threads = Some(1);
    needs::load_modules();
    let machine = needs::Machine::probe();
    let trials = suite::all(brief.is_empty()).into_iter().map(|case| case.trial(&machine)).collect();
    libtest_mimic::run(&arguments, trials).exit_code()
}
