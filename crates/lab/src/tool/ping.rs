//! ping: its arguments and its output.

use std::time::Duration;

use crate::tool::irtt::Exchange;
use sluice_error::Result;
use sluice_testbed::Namespace;
use sluice_testbed::process::Process;
use sluice_testbed::tool::PING;

/// Echo requests at a pace.
#[derive(Debug, Clone, Copy)]
pub struct Echo {
    /// Interval of requests.
    pub interval: Duration,
    /// Payload, bytes.
    pub bytes: u32,
    /// The TOS byte.
    pub tos: u8,
}

impl Echo {
    /// The number of requests in this time.
    pub fn count(&self, duration: Duration) -> u64 {
        (duration.as_secs_f64() / self.interval.as_secs_f64()).floor().max(1.0) as u64
    }
}

/// Starts ping for this time.
pub fn start(host: &Namespace, server: &str, echo: &Echo, duration: Duration) -> Result<Process> {
    let interval = echo.interval.as_secs_f64().to_string();
    let [bytes, tos] = [echo.bytes, echo.tos.into()].map(|number| number.to_string());
    let count = echo.count(duration).to_string();
    // -W is the time to wait for the last answers, seconds.
    host.start_timing(
        PING.program,
        &["-n", "-D", "-i", &interval, "-c", &count, "-s", &bytes, "-Q", &tos, "-W", "3", server],
    )
}

/// Parses the output: answers, and losses from the gaps in their numbers.
pub fn parse(text: &str, sent: u64, interval: Duration, zero_s: f64) -> Vec<Exchange> {
    let answers: Vec<(u64, f64, f64)> = text.lines().filter_map(answer).collect();
    // The send time of number 1, by the first answer.
    let begin_s = answers
        .first()
        .map_or(zero_s, |(number, at_s, ms)| at_s - ms / 1e3 - (*number as f64 - 1.0) * interval.as_secs_f64());
    (1..=sent)
        .map(|number| {
            let due_s = begin_s + (number as f64 - 1.0) * interval.as_secs_f64();
            let found = answers.iter().find(|answer| answer.0 == number);
            let sent_s = found.map_or(due_s, |(_, at_s, ms)| at_s - ms / 1e3);
            let whole_ms = found.map(|(_, _, ms)| *ms);
            Exchange { sent_ms: (sent_s - zero_s) * 1e3, whole_ms, there_ms: None, back_ms: None }
        })
        .collect()
}

/// Parses "[1700000000.123456] 64 bytes from 10.99.3.2: icmp_seq=1 ttl=62 time=0.045 ms": number, arrival time, round trip.
fn answer(line: &str) -> Option<(u64, f64, f64)> {
    let (at, rest) = line.strip_prefix('[')?.split_once(']')?;
    let field = |name: &str| rest.split_whitespace().find_map(|word| word.strip_prefix(name));
    Some((field("icmp_seq=")?.parse().ok()?, at.parse().ok()?, field("time=")?.parse().ok()?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn recorded_output_is_parsed_and_gaps_are_losses() {
        let text = "PING 127.0.0.1 (127.0.0.1) 56(84) bytes of data.\n\
            [1795274950.500020] 64 bytes from 127.0.0.1: icmp_seq=1 ttl=64 time=0.020 ms\n\
            [1795274950.900030] 64 bytes from 127.0.0.1: icmp_seq=3 ttl=64 time=0.030 ms\n\n\
            --- 127.0.0.1 ping statistics ---\n";
        let exchanges = parse(text, 3, Duration::from_millis(200), 1_795_274_950.0);
        assert_eq!(
            exchanges.iter().map(|exchange| exchange.whole_ms).collect::<Vec<_>>(),
            [Some(0.02), None, Some(0.03)]
        );
        assert!((exchanges[0].sent_ms - 500.0).abs() < 0.001 && (exchanges[1].sent_ms - 700.0).abs() < 0.001);
        assert_eq!(parse("", 2, Duration::from_millis(200), 5.0).len(), 2);
    }
}
