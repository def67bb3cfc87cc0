//! The processors of workers.

use nix::sched::{CpuSet, sched_getaffinity, sched_setaffinity};
use nix::unistd::Pid;
use sluice_error::{Doing, Result};

/// A processor, by its number.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Processor(usize);

impl Processor {
    /// Has this thread run there alone.
    ///
    /// # Errors
    ///
    /// The kernel refuses it.
    pub fn keep_to(self) -> Result<()> {
        let doing = || format!("keeping a worker to processor {}", self.0);
        let mut only = CpuSet::new();
        only.set(self.0).doing(doing)?;
        sched_setaffinity(Pid::from_raw(0), &only).doing(doing)
    }
}

/// The processors that this process may use, in their order.
///
/// # Errors
///
/// The kernel does not tell.
pub fn allowed() -> Result<Vec<Processor>> {
    let set = sched_getaffinity(Pid::from_raw(0)).doing(|| "asking for the processors of this process".to_owned())?;
    Ok((0..CpuSet::count()).filter(|number| set.is_set(*number).unwrap_or(false)).map(Processor).collect())
}

/// The processor of each of so many workers; none: the kernel chooses. A lone worker, and workers that are more than processors, are better moved to
/// where there is time.
pub fn places(allowed: &[Processor], workers: usize) -> Vec<Option<Processor>> {
    let each_has_one = workers > 1 && workers <= allowed.len();
    (0..workers).map(|number| allowed.get(number).copied().filter(|_| each_has_one)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_worker_has_an_allowed_processor_of_its_own() {
        let allowed = [3, 5, 6].map(Processor);
        assert_eq!(places(&allowed, 2), [Some(Processor(3)), Some(Processor(5))]);
        assert_eq!(places(&allowed, 3), allowed.map(Some));
        assert_eq!(places(&allowed, 4), [None; 4], "there are fewer processors than workers");
        assert_eq!(places(&allowed, 1), [None], "a lone worker may be moved");
    }

    #[test]
    fn a_thread_keeps_to_its_processor() {
        let last = *allowed().expect("an answer").last().expect("at least one");
        let within = std::thread::spawn(move || last.keep_to().and_then(|()| allowed())).join().expect("it ends");
        assert_eq!(within.expect("kept"), [last]);
        assert!(!allowed().expect("an answer").is_empty());
    }
}
