//! Drawings of fixed rates, compared character by character with files in `expected/`. `SLUICE_WRITE_EXPECTED=1` writes the
//! files instead.

use super::app::{Action, App};
use super::draw::draw;
use super::fixture::{flows, rates, rates_with_forwards, rates_with_subscribers, rates_with_tx_queues};
use ratatui::Terminal;
use ratatui::backend::TestBackend;
use ratatui::buffer::Buffer;
use ratatui::crossterm::event::{KeyCode, KeyEvent, KeyModifiers};
use ratatui::style::Color;
use std::path::Path;

fn app(color: bool) -> App {
    let mut app = App::new(color, 1.0, jiff::tz::TimeZone::UTC);
    (0..30).for_each(|second| app.take(rates(second)));
    app.take_flows(flows());
    app
}

fn press(app: &mut App, keys: &str) -> Action {
    let mut then = Action::Draw;
    for key in keys.chars() {
        let code = match key {
            '\n' => KeyCode::Enter,
            '\x1b' => KeyCode::Esc,
            '↓' => KeyCode::Down,
            key => KeyCode::Char(key),
        };
        then = app.key(KeyEvent::new(code, KeyModifiers::NONE));
    }
    then
}

fn drawn(app: &App, width: u16, height: u16) -> Buffer {
    let mut terminal = Terminal::new(TestBackend::new(width, height)).expect("a terminal in memory");
    terminal.draw(|frame| draw(frame, app)).expect("drawing in memory");
    terminal.backend().buffer().clone()
}

fn text(buffer: &Buffer) -> String {
    let width = usize::from(buffer.area.width);
    let rows = buffer.content.chunks(width);
    rows.map(|row| row.iter().map(|cell| cell.symbol()).collect::<String>().trim_end().to_owned() + "\n").collect()
}

#[track_caller]
fn shows(name: &str, app: &App, width: u16, height: u16) {
    let shown = text(&drawn(app, width, height));
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("src/top/expected").join(name);
    if std::env::var_os("SLUICE_WRITE_EXPECTED").is_some() {
        std::fs::write(&path, &shown).expect("writing what is expected");
    }
    let expected = std::fs::read_to_string(&path).unwrap_or_default();
    assert_eq!(shown, expected, "{name} is not what is drawn:\n{shown}");
}

#[test]
fn classes() {
    shows("classes-80x24.txt", &app(true), 80, 24);
    shows("classes-140x30.txt", &app(true), 140, 30);
    shows("classes-40x10.txt", &app(true), 40, 10);
}

#[test]
fn forwards_are_below_the_classes() {
    let mut app = app(true);
    app.take(rates_with_forwards(30));
    shows("forwards-140x30.txt", &app, 140, 30);
    // There is room for the busiest one, and for the number of the others.
    press(&mut app, "/eth0\n");
    shows("forwards-80x24.txt", &app, 80, 24);
    assert!(!text(&drawn(&app, 80, 23)).contains("forward"), "classes go first");
    press(&mut app, "\x1b/web\n");
    assert_eq!(app.forwards().iter().map(|(_, forward)| forward.name.as_str()).collect::<Vec<_>>(), ["web"]);
    press(&mut app, "\x1bii");
    assert!(app.forwards().is_empty(), "wlan0 alone has none");
    let once = super::once::text(&rates_with_forwards(30));
    let shows = ["any:443", "94", "470 kbit/s", "9.4 Mbit/s", "table_full 12"];
    assert!(shows.iter().all(|what| once.contains(what)), "{once}");
}

#[test]
fn subscribers() {
    let mut app = App::new(true, 1.0, jiff::tz::TimeZone::UTC);
    app.take(rates_with_subscribers());
    assert!(app.has_trees_alone());
    press(&mut app, "u");
    shows("subscribers-80x24.txt", &app, 80, 24);
    // The first row below the three sites is the subscriber that sends most, once they are in order.
    press(&mut app, "s↓↓↓");
    shows("subscribers-120x24.txt", &app, 120, 24);
    press(&mut app, "/shop\n");
    let ids: Vec<&str> = app
        .interfaces()
        .flat_map(|one| app.tree_rows(one.tree.as_ref().expect("a tree")))
        .map(|row| match row {
            super::app::TreeRow::Site(site) => site.name.as_str(),
            super::app::TreeRow::Subscriber(one) => one.id.as_str(),
        })
        .collect();
    assert_eq!(ids, ["Corner Shop"]);
    let once = super::once::text(&rates_with_subscribers());
    for text in
        ["down  4 subscribers, 3 of them send; 400 kbit/s of other addresses", "  north mast (3)", "Corner Shop", "99%"]
    {
        assert!(once.contains(text), "{text}: {once}");
    }
}

#[test]
fn chosen_class_shows_details() {
    let mut app = app(true);
    press(&mut app, "↓↓↓");
    shows("chosen-80x24.txt", &app, 80, 24);
}

#[test]
fn panes() {
    let mut app = app(true);
    press(&mut app, "d");
    shows("discipline-80x24.txt", &app, 80, 24);
    press(&mut app, "r");
    shows("rules-80x24.txt", &app, 80, 24);
    press(&mut app, "c?");
    shows("help-80x24.txt", &app, 80, 24);
}

#[test]
fn tx_queues_stand_where_one_scheduler_would() {
    let mut app = app(true);
    app.take(rates_with_tx_queues());
    press(&mut app, "d");
    shows("tx-queues-80x24.txt", &app, 80, 24);
}

#[test]
fn flows_are_ranked_and_anomalies_are_listed() {
    let mut app = app(true);
    press(&mut app, "f");
    shows("flows-80x24.txt", &app, 80, 24);
    shows("flows-160x30.txt", &app, 160, 30);
    press(&mut app, "/curl\n");
    assert_eq!(app.chosen_flows(&flows()).len(), 2);
    press(&mut app, "bn");
    assert_eq!(app.flow_options.by, sluice_observe::flows::By::Bytes);
    assert!(app.flow_options.resolve);
}

#[test]
fn sorting_and_filtering() {
    let mut app = app(true);
    press(&mut app, "ss/bul\n");
    shows("filtered-80x24.txt", &app, 80, 24);
    assert_eq!(app.rows().len(), 3);
    press(&mut app, "\x1b");
    let names = |app: &App| app.rows().iter().take(4).map(|row| row.class.name.clone()).collect::<Vec<_>>();
    assert_eq!(names(&app)[0], "bulk", "by queue");
    press(&mut app, "S");
    assert_eq!(names(&app)[3], "bulk", "the other way round");
    press(&mut app, "i");
    assert!(app.rows().iter().all(|row| row.interface.interface == "eth0"));
}

#[test]
fn pause_keeps_the_screen_and_records_history() {
    let mut app = app(true);
    press(&mut app, " ");
    app.take(rates(99));
    assert_eq!((app.rates.at_ms, app.history.len()), (rates(29).at_ms, 31));
    press(&mut app, " ");
    app.take(rates(100));
    assert_eq!(app.rates.at_ms, rates(100).at_ms);
}

#[test]
fn quit_keys_end_the_dashboard() {
    assert_eq!(press(&mut app(true), "q"), Action::Quit);
    let control_c = KeyEvent::new(KeyCode::Char('c'), KeyModifiers::CONTROL);
    let mut typing = app(true);
    press(&mut typing, "/q");
    assert_eq!(typing.filter, "q");
    assert_eq!(typing.key(control_c), Action::Quit);
}

#[test]
fn every_size_is_drawn() {
    let mut app = app(true);
    for keys in ["", "d", "r", "f", "c?"] {
        press(&mut app, keys);
        for (width, height) in [(1, 1), (3, 2), (20, 5), (79, 23), (81, 25), (300, 90)] {
            drawn(&app, width, height);
        }
    }
}

#[test]
fn colours_follow_states() {
    let colors = |color: bool| {
        let mut found: Vec<Color> = drawn(&app(color), 140, 30).content.iter().map(|cell| cell.fg).collect();
        found.sort_by_key(|color| format!("{color:?}"));
        found.dedup();
        found
    };
    assert_eq!(colors(false), [Color::Reset]);
    assert_eq!(colors(true), [Color::Cyan, Color::Green, Color::Magenta, Color::Red, Color::Reset]);
    let grounds = drawn(&app(true), 140, 30).content.iter().all(|cell| cell.bg == Color::Reset);
    assert!(grounds, "the ground stays the terminal's, light or dark");
}
