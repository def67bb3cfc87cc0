//! The list of tests, each of which runs in a lab of its own and must leave nothing.

use crate::lab::{Engine, Lab};
use crate::needs::{Machine, Need};
use libtest_mimic::Trial;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::time::Instant;

pub struct Case {
    pub name: String,
    engine: Engine,
    needs: Vec<Need>,
    body: fn(&Lab),
}

/// Cases of one subject.
pub struct Suite {
    subject: &'static str,
    pub alike_everywhere: bool,
    pub cases: Vec<Case>,
}

impl Suite {
    pub fn new(subject: &'static str) -> Suite {
        Suite { subject, alike_everywhere: false, cases: Vec::new() }
    }

    /// Marks tests that no kernel makes a difference to: of commands and files, and of decisions that one and the same program of ours takes.
    /// One kernel with each engine suffices, and for those that run once one kernel.
    pub fn alike_everywhere(self) -> Suite {
        Suite { alike_everywhere: true, ..self }
    }

    /// A test of both engines: of `qdisc` where it is supported, of `tc` where it is not.
    pub fn both(self, name: &str, needs: &[Need], body: fn(&Lab)) -> Suite {
        self.qdisc(name, needs, body).tc(name, needs, body)
    }

    pub fn qdisc(self, name: &str, needs: &[Need], body: fn(&Lab)) -> Suite {
        self.add(Engine::Qdisc, name, &[&[Need::BpfQdisc], needs].concat(), body)
    }

    pub fn tc(self, name: &str, needs: &[Need], body: fn(&Lab)) -> Suite {
        self.add(Engine::Tc, name, &[&[Need::NoBpfQdisc, Need::Htb], needs].concat(), body)
    }

    /// Engine `tc` also on a kernel with BPF qdiscs.
    pub fn tc_everywhere(self, name: &str, needs: &[Need], body: fn(&Lab)) -> Suite {
        self.add(Engine::Tc, name, &[&[Need::Htb], needs].concat(), body)
    }

    /// A test that runs once, on the engine that the product chooses.
    pub fn any(self, name: &str, needs: &[Need], body: fn(&Lab)) -> Suite {
        self.add(Engine::Auto, name, needs, body)
    }

    fn add(mut self, engine: Engine, name: &str, needs: &[Need], body: fn(&Lab)) -> Suite {
        let name = format!("{}::{}::{name}", engine.name(), self.subject);
        self.cases.push(Case { name, engine, needs: needs.to_vec(), body });
        self
    }
}

impl Case {
    /// Whether the test is of an engine, and not of the one that the product chooses.
    pub fn is_of_engine(&self) -> bool {
        self.engine != Engine::Auto
    }

    /// The test in the form of the harness. The reason to ignore a test is its kind.
    pub fn trial(self, machine: &Machine) -> Trial {
        let lacks = machine.lacks(&self.needs);
        let Case { name, engine, body, .. } = self;
        let trial = Trial::test(name, move || {
            let (lab, begin) = (Lab::new(engine), Instant::now());
            let result = catch_unwind(AssertUnwindSafe(|| body(&lab)));
            let left = lab.leftovers();
            eprintln!("    {:.1} s for the above", begin.elapsed().as_secs_f64());
            match result {
                Err(panic) => Err(message(panic.as_ref()).into()),
                Ok(()) if !left.is_empty() => Err(format!("left behind: {}", left.join(", ")).into()),
                Ok(()) => Ok(()),
            }
        });
        match lacks {
            Some(reason) => trial.with_ignored_flag(true).with_kind(reason),
            None => trial,
        }
    }
}

fn message(panic: &(dyn std::any::Any + Send)) -> String {
    let text = panic.downcast_ref::<String>().cloned();
    text.or_else(|| panic.downcast_ref::<&str>().map(|text| (*text).to_owned()))
        .unwrap_or_else(|| "panicked".to_owned())
}
