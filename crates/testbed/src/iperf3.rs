//! iperf3, a sender at full speed or at a rate: its arguments and its results.

use std::time::Duration;

use serde::Deserialize;

use crate::namespace::Namespace;
use crate::process::{Output, Process};
use crate::tool::IPERF3;
use sluice_error::{Error, Result};

/// The parameters of one test.
#[derive(Debug, Clone)]
pub struct Test {
    /// Port of the server.
    pub port: u16,
    /// Connections at a time.
    pub flows: u32,
    /// Time that the test lasts.
    pub duration: Duration,
    /// TOS byte of the packets.
    pub tos: u8,
    /// Transport protocol: TCP or UDP.
    pub transport: Transport,
}

/// The transport protocol of a test.
#[derive(Debug, Clone, PartialEq)]
pub enum Transport {
    /// TCP: the server sends.
    Tcp {
        /// Its congestion control.
        congestion: String,
        /// Its largest segment, bytes; none: what the path allows.
        segment: Option<u32>,
    },
    /// UDP: the client sends datagrams of so many bytes, at most so many bits per second in each flow.
    Udp {
        /// Payload of each datagram, bytes.
        bytes: u32,
        /// Bound of each flow, bits per second; none: no bound.
        rate_bps: Option<u64>,
    },
}

/// The results of a test.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct TestResult {
    /// Intervals of the test, in order.
    pub intervals: Vec<Interval>,
    /// TCP: segments that were sent again.
    pub retransmitted: Option<u64>,
    /// UDP: packets that the client sent in all.
    pub sent_packets: Option<u64>,
}

/// An interval of a test.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Interval {
    /// Start of the interval, seconds from the test's begin.
    pub start_s: f64,
    /// End of the interval, seconds from the test's begin.
    pub end_s: f64,
    /// Payload received by each flow, bytes.
    pub each_bytes: Vec<u64>,
    /// UDP: packets expected.
    pub sent_packets: u64,
    /// UDP: packets of these that did not come, less those of earlier intervals that came late. Can be negative.
    pub lost_packets: i64,
    /// UDP: jitter by iperf3's estimator (RFC 1889), ms.
    pub jitter_ms: Option<f64>,
}

impl Interval {
    /// Payload received by all flows, bytes.
    pub fn bytes(&self) -> u64 {
        self.each_bytes.iter().sum()
    }
}

/// UDP: the packets that were lost in several intervals together.
pub fn lost_packets<'a>(intervals: impl Iterator<Item = &'a Interval>) -> u64 {
    // Late packets from before the first of the intervals can make the sum negative.
    intervals.map(|interval| interval.lost_packets).sum::<i64>().max(0) as u64
}

/// Start a server for one test, at one of the host's addresses.
pub fn start_server(host: &Namespace, address: &str, port: u16) -> Result<Process> {
    // The server reports at the interval at which it was started, not at the client's.
    host.start(IPERF3.program, &["-s", "-1", "-B", address, "-p", &port.to_string(), "-i", "0.5", "-J"])
}

/// Time that a server may take until it listens.
const LISTEN_TIMEOUT: Duration = Duration::from_secs(20);

/// Start a server for one test at all addresses of the host, and wait until it listens.
pub fn serve(host: &Namespace, port: u16) -> Result<Process> {
    let server = host.start(IPERF3.program, &["-s", "-1", "-p", &port.to_string()])?;
    host.await_listener("tcp", port, LISTEN_TIMEOUT, || Ok(()))?;
    Ok(server)
}

/// Start the client of a test.
pub fn start_client(host: &Namespace, server: &str, test: &Test) -> Result<Process> {
    let [port, flows, tos] = [u32::from(test.port), test.flows, test.tos.into()].map(|number| number.to_string());
    let seconds = test.duration.as_secs_f64().ceil().to_string();
    let mut arguments =
        vec!["-4", "-c", server, "-p", &port, "-P", &flows, "-t", &seconds, "-S", &tos, "-i", "0.5", "-J"];
    let (length, rate);
    match &test.transport {
        Transport::Tcp { congestion, segment } => {
            arguments.extend(["-R", "-C", congestion]);
            if let Some(bytes) = segment {
                length = bytes.to_string();
                arguments.extend(["-M", &length]);
            }
        }
        Transport::Udp { bytes, rate_bps } => {
            (length, rate) = (bytes.to_string(), rate_bps.unwrap_or(0).to_string());
            // The server knows which packets arrived. A socket that blocks early never overruns a queue.
            arguments.extend(["-u", "-l", &length, "-b", &rate, "--get-server-output", "-w", "4M"]);
        }
    }
    host.start(IPERF3.program, &arguments)
}

#[derive(Deserialize)]
struct Document {
    error: Option<String>,
    #[serde(default)]
    intervals: Vec<RawInterval>,
    end: Option<End>,
    server_output_json: Option<Box<Document>>,
}

#[derive(Deserialize)]
struct RawInterval {
    streams: Vec<RawStream>,
    sum: Sum,
}

#[derive(Deserialize)]
struct RawStream {
    bytes: u64,
    #[serde(default)]
    packets: u64,
    #[serde(default)]
    lost_packets: i64,
    jitter_ms: Option<f64>,
}

#[derive(Deserialize)]
struct Sum {
    start: f64,
    end: f64,
}

#[derive(Deserialize)]
struct End {
    sum_sent: Option<SumSent>,
    sum: Option<SumUdp>,
}

#[derive(Deserialize)]
struct SumUdp {
    packets: Option<u64>,
}

#[derive(Deserialize)]
struct SumSent {
    retransmits: Option<u64>,
}

/// The results of a client that ended. iperf3 writes its own errors to standard output.
pub fn read(output: &Output) -> Result<TestResult> {
    if output.stdout.trim().is_empty() { Err(output.failure()) } else { parse(&output.stdout) }
}

/// Read a client's JSON.
pub fn parse(json: &str) -> Result<TestResult> {
    let document: Document = serde_json::from_str(json).map_err(|e| {
        Error::system(format!("cannot read the output of iperf3: {e}"))
            .help("iperf3 3.12, as Debian has it, is known to work")
    })?;
    if let Some(error) = document.error {
        return Err(Error::system(format!("iperf3 failed: {error}")));
    }
    let (sent, sum) = document.end.map_or((None, None), |end| (end.sum_sent, end.sum));
    let retransmitted = sent.and_then(|sent| sent.retransmits);
    let sent_packets = sum.and_then(|sum| sum.packets).filter(|packets| *packets > 0);
    let received = document.server_output_json.map_or(document.intervals, |server| server.intervals);
    let intervals = received
        .into_iter()
        .map(|raw| Interval {
            start_s: raw.sum.start,
            end_s: raw.sum.end,
            each_bytes: raw.streams.iter().map(|stream| stream.bytes).collect(),
            sent_packets: raw.streams.iter().map(|stream| stream.packets).sum(),
            lost_packets: raw.streams.iter().map(|stream| stream.lost_packets).sum(),
            jitter_ms: raw.streams.iter().filter_map(|stream| stream.jitter_ms).reduce(f64::max),
        })
        .collect();
    Ok(TestResult { intervals, retransmitted, sent_packets })
}

/// The client's JSON without the fields that name the machine: host name and local kernel version. Other texts stay as they are.
pub fn anonymous(text: &str) -> String {
    let Ok(mut document) = serde_json::from_str::<serde_json::Value>(text) else { return text.to_owned() };
    for start in ["/start", "/server_output_json/start"] {
        if let Some(start) = document.pointer_mut(start).and_then(serde_json::Value::as_object_mut) {
            start.retain(|key, _| !["system_info", "cookie"].contains(&key.as_str()));
        }
    }
    document.to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn recorded_output_is_parsed() {
        let result = parse(include_str!("../tests/fixtures/iperf3.json")).unwrap();
        assert_eq!(result.intervals.len(), 2);
        let first = &result.intervals[0];
        assert_eq!((first.start_s, first.end_s, first.bytes()), (0.0, 1.000131, 2_621_440));
        assert_eq!(first.each_bytes, [1_310_720, 1_310_720]);
    }

    #[test]
    fn received_datagrams_are_those_of_the_server() {
        let result = parse(include_str!("../tests/fixtures/iperf3-udp.json")).unwrap();
        let sum = |of: fn(&Interval) -> u64| result.intervals.iter().map(of).sum::<u64>();
        assert_eq!((sum(Interval::bytes), sum(|s| s.sent_packets)), (1_249_200, 1_041));
        assert_eq!(lost_packets(result.intervals.iter()), 200);
        assert!(result.intervals[0].jitter_ms.is_some());
    }

    #[test]
    fn late_packets_are_not_lost() {
        let interval = |start: u32, lost: i32| {
            format!(
                r#"{{"streams":[{{"bytes":1000,"packets":10,"lost_packets":{lost}}}],"sum":{{"start":{start},"end":{}}}}}"#,
                start + 1
            )
        };
        let result = parse(&format!(r#"{{"intervals":[{},{}]}}"#, interval(0, 7), interval(1, -4))).unwrap();
        assert_eq!(lost_packets(result.intervals.iter()), 3);
        assert_eq!(lost_packets(result.intervals[1..].iter()), 0, "packets from before these intervals");
    }

    #[test]
    fn stored_output_does_not_name_the_machine() {
        let kept = anonymous(r#"{"start":{"version":"iperf 3.12","system_info":"Linux host 1.2.3-local"},"end":{}}"#);
        assert_eq!(kept, r#"{"end":{},"start":{"version":"iperf 3.12"}}"#);
        assert_eq!(anonymous("[1.5] 64 bytes"), "[1.5] 64 bytes");
    }

    #[test]
    fn error_of_iperf3_is_passed_on() {
        let error =
            parse(r#"{"start":{},"intervals":[],"end":{},"error":"unable to connect to server: No route to host"}"#);
        assert_eq!(error.unwrap_err().what, "iperf3 failed: unable to connect to server: No route to host");
    }
}
