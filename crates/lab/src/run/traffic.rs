//! Loads as running programs, and their results.

use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use crate::format::{CHAIN_PORT, Load, LoadKind, OneWay, Topology};
use crate::result::results::{Delays, Flows, Timed};
use crate::result::statistics::{Distribution, mean_jitter_ms, standard_deviation};
use crate::run::network::Network;
use crate::tool::irtt::{self, Exchange, Stream};
use crate::tool::nginx;
use crate::tool::ping::{self, Echo};
use crate::tool::siege;
use crate::tool::web::{self, Pages};
use crate::tool::wrk::{self, Requests};
use sluice_error::{Error, Result};
use sluice_testbed::Namespace;
use sluice_testbed::interrupt::Interrupt;
use sluice_testbed::iperf3::{self, Test, Transport};
use sluice_testbed::process::{Output, Process};

/// Time that tools may need beyond their run time to end: emulated processors are slow.
pub const FINISH_GRACE: Duration = Duration::from_secs(120);
/// Time that siege may take for all its requests.
const SIEGE_LIMIT: Duration = Duration::from_secs(1_800);

/// The measured window of a trial, ms since the bulk traffic began.
#[derive(Debug, Clone, Copy, PartialEq, serde::Serialize)]
pub struct Window {
    /// Begin of the window, after warm-up.
    pub from_ms: f64,
    /// End of the window.
    pub to_ms: f64,
}

impl Window {
    /// Whether an activity from `from_ms` to `to_ms` overlaps the window.
    pub fn meets(&self, from_ms: f64, to_ms: f64) -> bool {
        from_ms < self.to_ms && to_ms >= self.from_ms
    }

    /// Whether a time is in the window.
    pub fn holds(&self, ms: f64) -> bool {
        (self.from_ms..self.to_ms).contains(&ms)
    }
}

/// A load with the addresses and parameters that it needs to run.
pub struct Runner<'a> {
    load: &'a Load,
    port: u16,
    from: &'a Namespace,
    to: &'a Namespace,
    from_address: String,
    to_address: String,
    rate_bps: u64,
    /// The address at which clients reach `from`.
    server: String,
    /// The directory of the tools' own files, over a chain.
    directory: PathBuf,
}

/// The results of the loads.
#[derive(Default)]
pub struct Measurements {
    /// Delays of the loads that measure them.
    pub delays: Vec<Delays>,
    /// Rates of the bulk loads.
    pub flows: Vec<Flows>,
    /// The tools' output: a file's name and its text.
    pub raw: Vec<(String, String)>,
}

/// A time, ms since `zero`.
pub fn since_ms(zero: SystemTime, time: SystemTime) -> f64 {
    match time.duration_since(zero) {
        Ok(after) => after.as_secs_f64() * 1e3,
        Err(before) => before.duration().as_secs_f64() * -1e3,
    }
}

fn unix_ns(time: SystemTime) -> Result<i64> {
    let since_1970 = time.duration_since(UNIX_EPOCH).ok().and_then(|d| i64::try_from(d.as_nanos()).ok());
    since_1970.ok_or_else(|| Error::system("the clock is set before 1970").help("set the clock"))
}

fn duration(ms: f64) -> Duration {
    Duration::from_secs_f64(ms.max(0.0) / 1e3)
}

impl<'a> Runner<'a> {
    /// The loads of a scenario.
    pub fn all(loads: &'a [Load], topology: &Topology, network: &'a Network, rate_bps: u64) -> Result<Vec<Runner<'a>>> {
        let address =
            |host: &str| topology.address_of(host).ok_or_else(|| Error::system(format!("host {host} has no address")));
        let runner = |(load, number): (&'a Load, u16)| {
            let (from, to) = (load.from.get_ref(), load.to.get_ref());
            Ok(Runner {
                load,
                port: load.listens(number).map_or(0, |(_, _, port)| port),
                from: network.host(from)?,
                to: network.host(to)?,
                from_address: address(from)?,
                server: address(from)?,
                directory: PathBuf::new(),
                to_address: address(to)?,
                rate_bps,
            })
        };
        loads.iter().zip(0..).map(runner).collect()
    }

    /// The load over a chain, whose server is reached at this address.
    pub fn over(self, address: &str, scratch: &Path) -> Runner<'a> {
        Runner { server: address.to_owned(), directory: scratch.join("load"), port: CHAIN_PORT, ..self }
    }

    /// Whether the load runs from the very begin, before the bulk traffic.
    pub fn is_probe(&self) -> bool {
        self.load.is_probe()
    }

    fn stream(&self) -> Stream {
        let interval_ms = self.load.interval.map_or(20.0, |interval| interval.0);
        Stream {
            port: self.port,
            interval_us: (interval_ms * 1e3) as u32,
            payload_bytes: self.load.bytes.unwrap_or(100),
            tos: self.tos(),
        }
    }

    fn echo(&self) -> Echo {
        Echo {
            interval: duration(self.load.interval.map_or(200.0, |interval| interval.0)),
            bytes: self.load.bytes.unwrap_or(56),
            tos: self.tos(),
        }
    }

    fn pages(&self) -> Pages {
        Pages {
            port: self.port,
            bytes: self.load.bytes.unwrap_or(30_000),
            interval: self.load.interval.map(|interval| duration(interval.0)),
            parallel: self.load.flows.unwrap_or(1),
        }
    }

    fn requests(&self, length: Duration) -> Requests {
        Requests { flows: self.load.flows.unwrap_or(1), keep_alive: self.load.keeps_alive(), length }
    }

    fn tos(&self) -> u8 {
        self.load.dscp.unwrap_or_default().0
    }

    fn test(&self, length: Duration) -> Test {
        let transport = match self.load.kind {
            LoadKind::Udp => Transport::Udp {
                bytes: self.load.bytes.unwrap_or(1_200),
                rate_bps: self.load.rate.and_then(|rate| rate.bps(self.rate_bps)),
            },
            _ => Transport::Tcp {
                congestion: self.load.congestion.clone().unwrap_or_else(|| "cubic".to_owned()),
                segment: self.load.bytes,
            },
        };
        Test { port: self.port, flows: self.load.flows.unwrap_or(1), duration: length, tos: self.tos(), transport }
    }

    /// Starts the load's server, if it has one, and waits until it listens.
    pub fn serve(&self, scratch: &Path, interrupt: &Interrupt) -> Result<Option<Process>> {
        let (host, table, server) = match self.load.kind {
            LoadKind::Ping | LoadKind::Frames => return Ok(None),
            LoadKind::Stream => (self.to, "udp", irtt::start_server(self.to, &self.to_address, &self.stream())?),
            LoadKind::Tcp => (self.from, "tcp", iperf3::start_server(self.from, &self.from_address, self.port)?),
            LoadKind::Udp => (self.to, "tcp", iperf3::start_server(self.to, &self.to_address, self.port)?),
            LoadKind::Web => {
                let pages = scratch.join(format!("pages-{}", self.port));
                (self.from, "tcp", web::start_server(self.from, &self.from_address, &self.pages(), &pages)?)
            }
            LoadKind::Siege | LoadKind::Wrk => {
                let bytes = self.load.bytes.unwrap_or_default();
                let server = nginx::start_server(self.from, &self.from_address, self.port, bytes, &self.directory)?;
                (self.from, "tcp", server)
            }
        };
        host.await_listener(table, self.port, FINISH_GRACE, || interrupt.check())?;
        Ok(Some(server))
    }

    /// Starts the load's client for this time.
    pub fn start(&self, length: Duration) -> Result<Process> {
        match self.load.kind {
            LoadKind::Frames => Err(Error::system("frames are sent at taps")),
            LoadKind::Ping => ping::start(self.from, &self.to_address, &self.echo(), length),
            LoadKind::Stream => irtt::start_client(self.from, &self.to_address, &self.stream(), length),
            LoadKind::Tcp => iperf3::start_client(self.to, &self.server, &self.test(length)),
            LoadKind::Udp => iperf3::start_client(self.from, &self.to_address, &self.test(length)),
            LoadKind::Web => web::start_client(self.to, &self.from_address, &self.pages(), length),
            LoadKind::Siege => {
                let requests = self.load.requests.unwrap_or_default();
                siege::start(self.to, &self.server, self.port, requests, &self.directory)
            }
            LoadKind::Wrk => wrk::start(self.to, &self.server, self.port, &self.requests(length), &self.directory),
        }
    }

    /// Waits for the client's end and reads its results.
    pub fn finish(
        &self,
        (number, client): (usize, Process),
        length: Duration,
        (zero, window): (SystemTime, Window),
        watch: impl FnMut() -> Result<()>,
        measurements: &mut Measurements,
    ) -> Result<()> {
        // Pages after the window change nothing.
        let output = match self.load.kind {
            LoadKind::Web => client.stop()?,
            LoadKind::Siege => client.finish(SIEGE_LIMIT, watch)?,
            _ => client.finish(length + FINISH_GRACE, watch)?,
        };
        let text = if output.stdout.is_empty() { &output.stderr } else { &output.stdout };
        measurements.raw.push((format!("{number}-{}.txt", self.load.name()), iperf3::anonymous(text)));
        match self.load.kind {
            LoadKind::Stream => {
                let output = output.expect_success()?;
                let exchanges = irtt::parse(&output.stdout, unix_ns(zero)?)?;
                measurements.delays.push(delays(self.load.name(), self.load.one_way, &exchanges, window));
            }
            LoadKind::Ping => {
                let sent = self.echo().count(length);
                let exchanges = ping::parse(&output.stdout, sent, self.echo().interval, unix_ns(zero)? as f64 / 1e9);
                // Status 1 means that some answers are missing, which is a result; 2 means that it could not send.
                if exchanges.iter().all(|exchange| exchange.whole_ms.is_none()) && output.status.code() != Some(1) {
                    return Err(output.failure());
                }
                measurements.delays.push(delays(self.load.name(), self.load.one_way, &exchanges, window));
            }
            LoadKind::Tcp | LoadKind::Udp => {
                let result = iperf3::read(&output)?;
                measurements.flows.push(self.flows(&result, window));
            }
            LoadKind::Web => self.fetched(&output, zero, window, measurements),
            LoadKind::Frames => {}
            LoadKind::Siege => measurements.delays.push(self.sieged(&output, zero)?),
            LoadKind::Wrk => {
                let answers = wrk::parse(&output.expect_success()?.stdout)?;
                measurements.delays.push(Delays {
                    per_second: Some(answers.per_second),
                    sent: answers.answered + answers.failed,
                    lost: answers.failed,
                    ..fetches(self.load.name(), answers.times)
                });
            }
        }
        Ok(())
    }

    fn flows(&self, result: &iperf3::TestResult, window: Window) -> Flows {
        let counted = || result.intervals.iter().filter(|s| window.holds((s.start_s + s.end_s) * 500.0));
        let seconds: f64 = counted().map(|s| s.end_s - s.start_s).sum();
        let mbit = |bytes: u64, seconds: f64| if seconds > 0.0 { bytes as f64 * 8.0 / 1e6 / seconds } else { 0.0 };
        let flows = counted().map(|s| s.each_bytes.len()).max().unwrap_or(0);
        let of_flow = |flow: usize| counted().filter_map(|s| s.each_bytes.get(flow)).sum();
        let sent: u64 = counted().map(|s| s.sent_packets).sum();
        let lost = iperf3::lost_packets(counted());
        let jitters: Vec<f64> = counted().filter_map(|s| s.jitter_ms).collect();
        let rates: Vec<f64> = counted().map(|s| mbit(s.bytes(), s.end_s - s.start_s)).collect();
        Flows {
            load: self.load.name().to_owned(),
            mbit: mbit(counted().map(iperf3::Interval::bytes).sum(), seconds),
            each_mbit: (0..flows).map(|flow| mbit(of_flow(flow), seconds)).collect(),
            series: result
                .intervals
                .iter()
                .map(|s| (thousandths(s.end_s * 1e3), thousandths(mbit(s.bytes(), s.end_s - s.start_s))))
                .collect(),
            retransmitted: result.retransmitted.filter(|_| self.load.kind == LoadKind::Tcp),
            // A server that received nothing reports no losses.
            lost_percent: if sent > 0 {
                Some(lost as f64 * 100.0 / sent as f64)
            } else {
                result.sent_packets.map(|_| 100.0)
            },
            jitter_ms: (!jitters.is_empty()).then(|| jitters.iter().sum::<f64>() / jitters.len() as f64),
            deviation_kbit: standard_deviation(&rates).map(|mbit| mbit * 1e3),
        }
    }

    fn sieged(&self, output: &Output, zero: SystemTime) -> Result<Delays> {
        let answers = siege::parse(&output.lines, self.load.bytes.unwrap_or_default());
        if answers.is_empty() && !output.status.success() {
            return Err(output.failure());
        }
        let sent = u64::from(self.load.requests.unwrap_or_default());
        let timed = || answers.iter().filter_map(|(ended, ms)| Some((*ended, (*ms)?)));
        let at_ms = |ended: SystemTime, took_ms: f64| thousandths(since_ms(zero, ended) - took_ms);
        Ok(Delays {
            sent,
            lost: sent.saturating_sub(answers.len() as u64),
            series: timed().map(|(ended, ms)| (at_ms(ended, ms), Some(thousandths(ms)))).collect(),
            ..fetches(self.load.name(), Distribution::of(timed().map(|(_, ms)| ms)))
        })
    }

    fn fetched(&self, output: &Output, zero: SystemTime, window: Window, measurements: &mut Measurements) {
        let bytes = self.pages().bytes;
        let fetches: Vec<(f64, web::Fetch)> = web::parse(&output.lines, bytes)
            .into_iter()
            .map(|fetch| (since_ms(zero, fetch.ended) - fetch.whole_ms, fetch))
            .collect();
        let counted: Vec<&web::Fetch> = fetches
            .iter()
            .filter(|(began_ms, fetch)| window.meets(*began_ms, began_ms + fetch.whole_ms))
            .map(|(_, fetch)| fetch)
            .collect();
        // curl asks for one page after another, so a slow page delays the next ones.
        let due = self
            .pages()
            .interval
            .map_or(0, |interval| ((window.to_ms - window.from_ms) / 1e3 / interval.as_secs_f64()) as u64);
        let asked = due.max(counted.len() as u64);
        let complete = |fetch: &web::Fetch| fetch.complete.then_some(fetch.whole_ms);
        let connects = || counted.iter().filter(|fetch| fetch.complete).map(|fetch| fetch.connect_ms);
        measurements.delays.push(Delays {
            load: self.load.name().to_owned(),
            what: Timed::Fetch,
            idle: Distribution::of(fetches.iter().filter(|(at, _)| *at < 0.0).filter_map(|(_, f)| complete(f))),
            whole: Distribution::of(counted.iter().filter_map(|fetch| complete(fetch))),
            one_way: None,
            idle_one_way: None,
            jitter_ms: None,
            sent: asked,
            lost: asked - counted.iter().filter(|fetch| fetch.complete).count() as u64,
            series: fetches.iter().map(|(at, fetch)| (thousandths(*at), complete(fetch).map(thousandths))).collect(),
            connect: Distribution::of(connects()),
            per_minute: per_minute(&counted),
            per_second: None,
        });
        if self.load.interval.is_none() {
            measurements.flows.push(carried(self.load.name(), &fetches, zero, window));
        }
    }
}

/// The delays of these packets; `way` is the direction through the bottleneck, if one is timed alone.
pub fn delays(load: &str, way: Option<OneWay>, exchanges: &[Exchange], window: Window) -> Delays {
    let one_way = |exchange: &Exchange| match way {
        Some(OneWay::There) => exchange.there_ms,
        Some(OneWay::Back) => exchange.back_ms,
        None => None,
    };
    let counted: Vec<&Exchange> = exchanges.iter().filter(|exchange| window.holds(exchange.sent_ms)).collect();
    let idle = || exchanges.iter().filter(|exchange| exchange.sent_ms < 0.0);
    let shown_delay = |exchange: &Exchange| if way.is_some() { one_way(exchange) } else { exchange.whole_ms };
    let counted_delays: Vec<Option<f64>> = counted.iter().map(|exchange| shown_delay(exchange)).collect();
    Delays {
        load: load.to_owned(),
        what: Timed::RoundTrip,
        idle: Distribution::of(idle().filter_map(|exchange| exchange.whole_ms)),
        whole: Distribution::of(counted.iter().filter_map(|exchange| exchange.whole_ms)),
        one_way: Distribution::of(counted.iter().filter_map(|exchange| one_way(exchange))),
        idle_one_way: Distribution::of(idle().filter_map(one_way)),
        jitter_ms: mean_jitter_ms(&counted_delays),
        sent: counted.len() as u64,
        lost: counted.iter().filter(|exchange| exchange.whole_ms.is_none()).count() as u64,
        series: exchanges
            .iter()
            .map(|exchange| (thousandths(exchange.sent_ms), shown_delay(exchange).map(thousandths)))
            .collect(),
        connect: None,
        per_minute: None,
        per_second: None,
    }
}

/// The durations of fetches, of which nothing else is known.
fn fetches(load: &str, whole: Option<Distribution>) -> Delays {
    Delays {
        load: load.to_owned(),
        what: Timed::Fetch,
        idle: None,
        whole,
        one_way: None,
        idle_one_way: None,
        jitter_ms: None,
        sent: 0,
        lost: 0,
        series: Vec::new(),
        connect: None,
        per_minute: None,
        per_second: None,
    }
}

/// The rates of fetched pages, by the times at which the fetches ended.
fn carried(load: &str, fetches: &[(f64, web::Fetch)], zero: SystemTime, window: Window) -> Flows {
    const INTERVAL_MS: f64 = 500.0;
    let ended = |from_ms: f64, to_ms: f64| {
        let bytes: u64 = fetches
            .iter()
            .filter(|(_, fetch)| (from_ms..to_ms).contains(&since_ms(zero, fetch.ended)))
            .map(|(_, fetch)| fetch.bytes)
            .sum();
        bytes as f64 * 8.0 / 1e3 / (to_ms - from_ms)
    };
    let mbit = ended(window.from_ms, window.to_ms);
    let intervals = (window.to_ms / INTERVAL_MS) as u32;
    let interval = |n: u32| {
        let end_ms = f64::from(n + 1) * INTERVAL_MS;
        (end_ms, thousandths(ended(end_ms - INTERVAL_MS, end_ms)))
    };
    Flows {
        load: load.to_owned(),
        mbit,
        each_mbit: Vec::new(),
        series: (0..intervals).map(interval).collect(),
        retransmitted: None,
        lost_percent: None,
        jitter_ms: None,
        deviation_kbit: None,
    }
}

/// Round trips a minute under load, from the TCP handshakes and the HTTP exchanges of new connections: each kind's mean without
/// the slowest twentieth (draft-ietf-ippm-responsiveness, the part of it that needs neither TLS nor the loaded connections).
fn per_minute(fetches: &[&web::Fetch]) -> Option<f64> {
    let mean = |of: &dyn Fn(&web::Fetch) -> f64| {
        let mut all: Vec<f64> = fetches.iter().filter(|fetch| fetch.complete).map(|fetch| of(fetch)).collect();
        all.sort_by(f64::total_cmp);
        all.truncate((all.len() * 95).div_ceil(100));
        (!all.is_empty()).then(|| all.iter().sum::<f64>() / all.len() as f64)
    };
    let connect_ms = mean(&|fetch| fetch.connect_ms)?;
    let exchange_ms = mean(&|fetch| fetch.whole_ms - fetch.connect_ms)?;
    Some(60_000.0 / ((connect_ms + exchange_ms) / 2.0))
}

/// Rounds to thousandths, which keeps files short.
fn thousandths(value: f64) -> f64 {
    (value * 1e3).round() / 1e3
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_window_counts() {
        let exchange = |sent_ms, whole_ms: Option<f64>| Exchange {
            sent_ms,
            whole_ms,
            there_ms: whole_ms.map(|ms| ms / 2.0),
            back_ms: None,
        };
        let exchanges = [
            exchange(-500.0, Some(0.1)),
            exchange(500.0, Some(99.0)),
            exchange(1_000.0, Some(4.0)),
            exchange(1_200.0, None),
            exchange(1_400.0, Some(6.0)),
            exchange(1_600.0, Some(7.0)),
            exchange(2_000.0, Some(99.0)),
        ];
        let window = Window { from_ms: 1_000.0, to_ms: 2_000.0 };
        let counted_delays = delays("game", None, &exchanges, window);
        assert_eq!((counted_delays.sent, counted_delays.lost, counted_delays.idle.unwrap().max_ms), (4, 1, 0.1));
        let whole = counted_delays.whole.unwrap();
        assert_eq!((whole.count, whole.p50_ms, whole.max_ms), (3, 6.0, 7.0));
        assert_eq!(
            (counted_delays.jitter_ms, counted_delays.one_way, counted_delays.series.len()),
            (Some(1.0), None, 7)
        );
        let there = delays("game", Some(OneWay::There), &exchanges, window);
        assert_eq!((there.one_way.unwrap().p50_ms, there.jitter_ms), (3.0, Some(0.5)));
        assert_eq!((there.series[2], there.idle_one_way.unwrap().max_ms), ((1_000.0, Some(2.0)), 0.05));
    }

    #[test]
    fn responsiveness_is_round_trips_a_minute() {
        let fetch = |connect_ms, whole_ms, complete| web::Fetch {
            ended: SystemTime::now(),
            connect_ms,
            whole_ms,
            bytes: 1_000,
            complete,
        };
        let (good, lost) = (fetch(20.0, 60.0, true), fetch(0.0, 10_000.0, false));
        assert_eq!(per_minute(&[&good, &good, &lost]), Some(2_000.0));
        assert_eq!(per_minute(&[&lost]), None);
        // The slowest of twenty is left out.
        let mut twenty = vec![&good; 19];
        let slow = fetch(900.0, 2_000.0, true);
        twenty.push(&slow);
        assert_eq!(per_minute(&twenty), Some(2_000.0));
    }
}
