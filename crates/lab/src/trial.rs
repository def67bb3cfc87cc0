//! One run: the same traffic, from silence through warm-up to the end of the measured stretch, under one contender.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

use crate::contender::Contender;
use crate::error::{Error, Result};
use crate::interrupt::Interrupt;
use crate::irtt::{self, Stream};
use crate::line::{self, Line};
use crate::measurement::{Bulk, ModemQueue, Probe, Run, Window};
use crate::progress::Progress;
use crate::{iperf3, offload, qdisc};

/// A game: 64 packets a second to the port that consoles use.
pub const GAME: Stream = Stream { port: 3074, interval_us: 15_625, payload_bytes: 100, tos: 0 };
/// A call: 50 packets a second of 20 ms of speech (G.711 in RTP), marked EF.
pub const CALL: Stream = Stream { port: 5004, interval_us: 20_000, payload_bytes: 172, tos: 0xb8 };
/// Downloads at a time.
pub const DOWNLOADS: u32 = 4;
/// Their congestion control.
pub const CONGESTION_CONTROL: &str = "cubic";

/// Game and call alone, before the downloads begin, seconds.
pub const IDLE_S: u32 = 1;
/// From the downloads' begin to the measured stretch, seconds.
pub const WARM_UP_S: u32 = 2;
/// The downloads go on this long after the measured stretch, seconds.
const TAIL_S: u32 = 1;
/// Tools may need this long beyond their time to end, seconds: emulated processors are slow.
const PATIENCE_S: u32 = 120;
/// How often the modem's queue is looked at, ms.
const LOOK_MS: f64 = 500.0;

/// Time that a run takes when nothing waits.
pub fn nominal(seconds: u32) -> Duration {
    Duration::from_secs((IDLE_S + WARM_UP_S + seconds + TAIL_S).into())
}

/// The stretch that counts.
pub fn window(seconds: u32) -> Window {
    Window { from_ms: f64::from(WARM_UP_S) * 1e3, to_ms: f64::from(WARM_UP_S + seconds) * 1e3 }
}

/// Run the traffic over the line under a contender, which is gone again afterwards.
pub fn run(
    line: &Line,
    contender: &Contender,
    seconds: u32,
    rate_mbit: u32,
    progress: &Progress,
    interrupt: &Interrupt,
) -> Result<Run> {
    let watch = || {
        progress.tick();
        interrupt.check()
    };
    let active = contender.start(&line.router, line::ROUTER_EGRESS)?;
    let engine = active.engine.clone();
    let offloads = offload::describe(&line.router, line::ROUTER_EGRESS);
    let _servers = [
        irtt::start_server(&line.server, line::SERVER_ADDRESS, &GAME)?,
        irtt::start_server(&line.server, line::SERVER_ADDRESS, &CALL)?,
        iperf3::start_server(&line.server, line::SERVER_ADDRESS)?,
    ];
    let limit = Duration::from_secs(PATIENCE_S.into());
    for (table, port) in [("udp", GAME.port), ("udp", CALL.port), ("tcp", iperf3::PORT)] {
        line.server.await_listener(table, port, limit, interrupt)?;
    }

    let dropped_before = qdisc::root(&line.modem, line::MODEM_EGRESS)?.dropped_packets;
    let probe_s = IDLE_S + WARM_UP_S + seconds;
    let game = irtt::start_client(&line.home, line::SERVER_ADDRESS, &GAME, probe_s)?;
    let call = irtt::start_client(&line.home, line::SERVER_ADDRESS, &CALL, probe_s)?;
    let silence = SystemTime::now();
    while elapsed_ms(silence) < f64::from(IDLE_S) * 1e3 {
        watch()?;
        std::thread::sleep(Duration::from_millis(20));
    }

    let bulk_s = WARM_UP_S + seconds + TAIL_S;
    let began = SystemTime::now();
    let bulk = iperf3::start_download(&line.home, line::SERVER_ADDRESS, DOWNLOADS, CONGESTION_CONTROL, bulk_s)?;
    let mut looks = Vec::new();
    let bulk = bulk.finish(Duration::from_secs((bulk_s + PATIENCE_S).into()), || {
        let now_ms = elapsed_ms(began);
        if looks.last().is_none_or(|(last_ms, _)| now_ms - last_ms >= LOOK_MS) {
            looks.push((now_ms, qdisc::root(&line.modem, line::MODEM_EGRESS)?.backlog_bytes));
        }
        watch()
    })?;
    let game = game.finish(limit, watch)?.expect_success()?;
    let call = call.finish(limit, watch)?.expect_success()?;
    let dropped = qdisc::root(&line.modem, line::MODEM_EGRESS)?.dropped_packets - dropped_before;
    active.stop()?;

    // iperf3 tells its own errors on standard output, with exit code 1.
    let intervals = if bulk.stdout.trim().is_empty() { Err(bulk.failure()) } else { iperf3::parse(&bulk.stdout) }?;
    let window = window(seconds);
    let zero_ns = wall_ns(began)?;
    Ok(Run {
        contender: contender.title().to_owned(),
        engine,
        offloads,
        game: Probe::of(irtt::parse(&game.stdout, zero_ns)?, window),
        call: Probe::of(irtt::parse(&call.stdout, zero_ns)?, window),
        bulk: Bulk::of(&intervals, window),
        modem_queue: ModemQueue::of(looks, dropped, window, rate_mbit),
    })
}

fn elapsed_ms(since: SystemTime) -> f64 {
    since.elapsed().unwrap_or_default().as_secs_f64() * 1e3
}

fn wall_ns(time: SystemTime) -> Result<i64> {
    let since_1970 = time.duration_since(UNIX_EPOCH).ok().and_then(|d| i64::try_from(d.as_nanos()).ok());
    since_1970.ok_or_else(|| Error::system("the clock is set before 1970").help("set the clock"))
}
