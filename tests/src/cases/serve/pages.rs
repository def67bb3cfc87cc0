//! The page of `sluice serve` in a real browser: it shows the true state, and actions in it take effect.

mod subscribers;

use super::begin;
use crate::browser::{Browser, Viewport};
use crate::command::await_that;
use crate::lab::Lab;
use crate::needs::Need;
use crate::net::Pair;
use crate::policy::{other, port, three};
use crate::server::Server;
use crate::suite::Suite;
use crate::traffic::{self, Flow, Outcome};
use serde_json::{Value, json};
use std::time::Duration;

const LONG: Duration = Duration::from_secs(20);

pub fn suite() -> Suite {
    Suite::new("page")
        .alike_everywhere()
        .any("charts_show_the_data", &[Need::Equipped], charts_show_the_data)
        .any("waits_are_drawn", &[Need::Equipped], waits_are_drawn)
        .any("forwards_are_listed", &[Need::Equipped], forwards_are_listed)
        .any("subscribers_by_site", &[Need::Equipped], subscribers::subscribers_by_site)
        .any("class_tree", &[Need::Equipped], subscribers::class_tree)
        .any("policies_are_edited", &[Need::Equipped], policies_are_edited)
        .any("phone_with_dark_theme", &[Need::Equipped], phone_with_dark_theme)
}

/// Opens the page at the URL that `sluice serve` has printed.
fn open(server: &Server, browser: &Browser) {
    browser.open(&format!("{}/#token={}", server.place, server.token));
    browser.until("the page is live", "document.getElementById('link').dataset.state === 'live'");
}

/// `1.5 Mbit/s` as bits per second.
fn bits(text: &str) -> f64 {
    let (number, unit) = text.split_once(' ').unwrap_or_else(|| panic!("not a rate: {text}"));
    let scale = match unit {
        "bit/s" => 1.0,
        "kbit/s" => 1e3,
        "Mbit/s" => 1e6,
        other => panic!("not a unit: {other}"),
    };
    number.parse::<f64>().unwrap_or_else(|error| panic!("{text}: {error}")) * scale
}

/// The numbers of a chart by its table, newest first: a rate per class and row.
fn numbers(browser: &Browser, chart: &str) -> (Vec<String>, Vec<Vec<String>>) {
    let table = browser.script(&format!(
        "const table = document.getElementById('{chart}-numbers');
         return [...table.rows].map((row) => [...row.cells].map((cell) => cell.textContent));"
    ));
    let mut rows: Vec<Vec<String>> = serde_json::from_value(table).expect("rows of text");
    let head = rows.remove(0);
    (head, rows)
}

/// An expression of JavaScript: the number of pixels in the colour of a class on a chart.
fn pixels(chart: &str, class: usize) -> String {
    format!(
        "(() => {{
           const canvas = document.querySelector('#{chart} canvas');
           const probe = document.createElement('i');
           probe.className = 'c{class}';
           document.body.append(probe);
           const want = getComputedStyle(probe).backgroundColor.match(/\\d+/g).map(Number);
           probe.remove();
           const all = canvas.getContext('2d').getImageData(0, 0, canvas.width, canvas.height).data;
           let count = 0;
           for (let n = 0; n < all.length; n += 4) {{
             if (all[n + 3] > 200 && want.every((value, k) => Math.abs(value - all[n + k]) < 24)) count += 1;
           }}
           return count;
         }})()"
    )
}

fn charts_show_the_data(lab: &Lab) {
    let (pair, server) = begin(lab);
    let browser = Browser::start(&pair.a, Viewport::DESKTOP);
    open(&server, &browser);
    let flows = [Flow::new(port(1), &[500], 2_000_000), Flow::new(port(2), &[1000], 6_000_000)];
    let streams = traffic::start(&pair.a, &pair.b, "10.77.0.2", &flows);
    browser.click("#chart-sent summary");
    std::thread::sleep(Duration::from_secs(6));
    browser.click("#pause");
    browser.until("the page pauses", "document.getElementById('link').dataset.state === 'paused'");
    numbers_are_those_of_the_series(&server, &browser);
    let drawn =
        |class: usize| browser.script(&format!("return {};", pixels("chart-sent", class))).as_u64().unwrap_or(0);
    assert!(drawn(1) > 50 && drawn(2) > 50, "lines of game: {} pixels, of bulk: {}", drawn(1), drawn(2));
    browser.click("#legend li:nth-child(3) button");
    assert_eq!(drawn(2), 0, "bulk is hidden");
    let name = browser.script("return document.querySelector('#chart-sent [role=img]').getAttribute('aria-label');");
    assert!(name.as_str().is_some_and(|name| name.contains("now:") && name.contains("bit/s")), "{name}");

    // Senders that were held up catch up, for which a queue may be too short.
    let outcomes = streams.finish(|| lab.status(&pair.a, "a0").direction("egress").totals().1);
    browser.click("#pause");
    rules_and_flows_are_listed(&browser, &outcomes);
    drop(browser);
    super::end(lab, &pair, server);
}

/// Each row of the chart's table is in the server's series of rates, and bulk is seen at its rate.
fn numbers_are_those_of_the_series(server: &Server, browser: &Browser) {
    let (head, rows) = numbers(browser, "chart-sent");
    assert_eq!(head, ["time", "control", "game", "bulk"]);
    let series = server.get("/api/interfaces/a0/series?points=60").json();
    let known = |class: u64| -> Vec<f64> {
        let all = series["series"].as_array().expect("series").iter();
        let mut one = all.filter(|one| one["direction"] == "egress" && one["class"] == class);
        let points = one.next().expect("a class")["sent_bps"].as_array().expect("points");
        points.iter().map(|value| value.as_f64().unwrap_or(0.0)).collect()
    };
    let (game, bulk) = (known(1), known(2));
    assert!(rows.len() >= 6, "{rows:?}");
    let mut busy = 0;
    for row in &rows {
        let (shown_game, shown_bulk) = (bits(&row[2]), bits(&row[3]));
        // The page rounds to three digits.
        let near = |a: f64, b: f64| (a - b).abs() <= 0.011 * b + 1.0;
        let same = |n: usize| near(shown_game, game[n]) && near(shown_bulk, bulk[n]);
        assert!((0..game.len()).any(same), "{row:?} is not in {game:?} and {bulk:?}");
        busy += usize::from((5.4e6..6.6e6).contains(&shown_bulk));
    }
    assert!(busy >= 2, "bulk is seen at its rate: {rows:?}");
}

/// The hits of rules equal the packets sent, and both flows are in the list of flows.
fn rules_and_flows_are_listed(browser: &Browser, outcomes: &[Outcome]) {
    browser.click(".tabs a[href='#rules']");
    let hits = |rule: &str| {
        let script = format!(
            "const row = [...document.querySelectorAll('#rules tbody tr')].find((row) => row.cells[1].textContent === '{rule}');
             return row ? row.cells[5].textContent.replace(/\\D/g, '') : '';"
        );
        browser.script(&script)
    };
    await_that("the hits are those of what was sent", LONG, || {
        hits("to 1") == json!(outcomes[0].sent.to_string()) && hits("to 2") == json!(outcomes[1].sent.to_string())
    });
    let asks = "[...document.querySelectorAll('#rules tbody tr')].map((row) => row.cells[2].textContent).join('|')";
    browser.until("what rules match is shown", &format!("{asks}.includes('dst_port 3001')"));
    browser.click(".tabs a[href='#flows']");
    let shown = "[...document.querySelectorAll('#flows tbody tr')].map((row) => row.textContent).join('|')";
    browser.until(
        "both flows are listed",
        &format!("{shown}.includes('10.77.0.2:3001') && {shown}.includes('10.77.0.2:3002')"),
    );
}

/// The chart of times in queue, with data. No kernel with browsers has engine `qdisc`, so the script adds that engine's waits
/// to each answer of the server.
fn waits_are_drawn(lab: &Lab) {
    let (pair, server) = begin(lab);
    let browser = Browser::start(&pair.a, Viewport::DESKTOP);
    open(&server, &browser);
    browser.script(
        "const ask = window.fetch;
         window.fetch = async (path, options) => {
           const answer = await ask(path, options);
           if (!String(path).includes('/rates')) return answer;
           const rates = await answer.json();
           for (const side of rates.directions) {
             side.classes.forEach((one, n) => { one.sojourn = { p50_us: 200, p95_us: 500, p99_us: 900 * (n + 1), max_us: 9000 }; });
           }
           rates.engine = 'qdisc';
           return new Response(JSON.stringify(rates), { status: answer.status, headers: { 'Content-Type': 'application/json' } });
         };",
    );
    browser.until("the chart is drawn", "document.querySelector('#chart-wait canvas') !== null");
    browser.script("document.querySelector('#chart-wait details').open = true;");
    let shown = "document.getElementById('chart-wait-numbers').textContent";
    // The game is the second class: its p99, and the median beside it.
    browser.until("waits are in the table", &format!("{shown}.includes('1.8 ms (median 200 µs)')"));
    let drawn = |class: usize| pixels("chart-wait", class);
    browser.until("a line for each class", &format!("{} > 20 && {} > 20", drawn(1), drawn(2)));
    let tile = browser.text("#tiles");
    assert!(tile.contains("2.7 ms") && !tile.contains("does not tell"), "{tile}");
    drop(browser);
    super::end(lab, &pair, server);
}

/// Puts a text into the editor, as pasting does.
fn paste(browser: &Browser, text: &str) {
    let text = Value::from(text);
    browser.script(&format!(
        "const area = document.getElementById('text');
         area.value = {text};
         area.dispatchEvent(new Event('input'));"
    ));
}

/// Waits until the verdict on the text in the editor contains these words.
fn verdict(browser: &Browser, words: &str) {
    browser.until(words, &format!("document.getElementById('verdict').textContent.includes({})", json!(words)));
}

fn is_apply_disabled(browser: &Browser) -> bool {
    browser.script("return document.getElementById('apply').disabled;") == true
}

/// An expression of JavaScript: the number of entries of the history that are shown.
const ENTRIES: &str = "document.querySelectorAll('#history tbody tr').length";

fn policies_are_edited(lab: &Lab) {
    let (pair, server) = begin(lab);
    let browser = Browser::start(&pair.a, Viewport::DESKTOP);
    // The page asks for a token when another policy than the one in force is to be checked.
    browser.open(&format!("{}/#policy", server.place));
    verdict(&browser, "this is what is in force");
    assert!(is_apply_disabled(&browser), "there is nothing to apply");
    typing_is_checked(lab, &pair, &server, &browser);
    a_finding_leads_to_its_place(&browser);
    a_change_is_reverted(lab, &pair, &browser);
    a_change_is_confirmed(lab, &pair, &browser);
    a_long_history_folds(lab, &pair, &browser);
    drop(browser);
    super::end(lab, &pair, server);
}

/// Types a wrong text as a user does, then the right one again: the token is asked for, and the findings are those of `check`.
fn typing_is_checked(lab: &Lab, pair: &Pair, server: &Server, browser: &Browser) {
    browser.keys("#text", "nonsense ");
    browser.until("the token is asked for", "document.getElementById('login').open");
    browser.keys("#token", "not-the-token\n");
    browser
        .until("a wrong one is refused", "document.getElementById('login-why').textContent.includes('not the token')");
    browser.keys("#token", &format!("{}\n", server.token));
    verdict(browser, "error");
    let printed =
        lab.sluice(&pair.a, &["check", &lab.file("typed.json", "nonsense {}").display().to_string()]).exits(2);
    let title = browser.script("return document.querySelector('#findings li div').textContent;");
    let title = title.as_str().unwrap_or("?").split(" (").next().unwrap_or("?").to_owned();
    assert!(printed.stderr.contains(&title), "{title} is not in {printed}");
    assert!(is_apply_disabled(browser));
    assert_eq!(browser.script("return document.querySelectorAll('.under-error').length > 0;"), true);
    browser.keys("#text", &"\u{e003}".repeat("nonsense ".len()));
    verdict(browser, "this is what is in force");
}

fn a_finding_leads_to_its_place(browser: &Browser) {
    paste(browser, "{ \"scheduler\": \"strict_prioritty\",\n\"classes\": [{ \"id\": 0 }] }");
    verdict(browser, "there is no scheduler \"strict_prioritty\"");
    let findings = browser.text("#findings");
    assert!(
        findings.contains("line 1, column 16") && findings.contains("did you mean \"strict_priority\"?"),
        "{findings}"
    );
    assert!(findings.contains("/scheduler"), "where it stands: {findings}");
    browser.click("#findings button");
    let selected = "const area = document.getElementById('text');
         return area.value.slice(area.selectionStart, area.selectionEnd) + area.getAttribute('aria-invalid');";
    assert_eq!(browser.script(selected), "\"strict_prioritty\"true");
}

/// Applies the other policy, which waits for a confirmation, and takes it back.
fn a_change_is_reverted(lab: &Lab, pair: &Pair, browser: &Browser) {
    let scheduler = || lab.status(&pair.a, "a0").policy.scheduler;
    paste(browser, &other().to_string());
    verdict(browser, "Valid.");
    let difference = browser.text("#difference");
    assert!(difference.contains("scheduler strict_priority -> deficit_round_robin"), "{difference}");
    assert!(difference.contains("late") && difference.contains("game"), "{difference}");
    browser.keys("#message", "from the page");
    assert_eq!(scheduler(), "strict_priority");
    browser.click("#apply");
    browser.until("the change waits", "!document.getElementById('pending').hidden");
    assert_eq!(scheduler(), "deficit_round_robin");
    assert!(lab.status(&pair.a, "a0").unconfirmed.is_some_and(|waits| waits.former == "old"));
    assert!(browser.text("#pending").contains("old comes back"), "{}", browser.text("#pending"));
    browser.click("#revert");
    browser.until("nothing waits", "document.getElementById('pending').hidden");
    assert_eq!(scheduler(), "strict_priority");
}

/// Applies the other policy again, confirms it, and goes back to the first policy by the history.
fn a_change_is_confirmed(lab: &Lab, pair: &Pair, browser: &Browser) {
    let scheduler = || lab.status(&pair.a, "a0").policy.scheduler;
    verdict(browser, "Valid.");
    browser.until("it can be applied again", "!document.getElementById('apply').disabled");
    browser.click("#apply");
    browser.until("the change waits again", "!document.getElementById('pending').hidden");
    browser.click("#confirm");
    browser.until("it is kept", "document.getElementById('pending').hidden");
    let status = lab.status(&pair.a, "a0");
    assert!(status.unconfirmed.is_none() && status.policy.scheduler == "deficit_round_robin", "{status:?}");
    browser.until("the history has all", &format!("{ENTRIES} === 4"));
    let history = browser.text("#history");
    assert!(history.contains("from the page") && history.contains("taken back by hand"), "{history}");

    // Rollback to the first policy.
    browser.script("document.getElementById('confirm-time').value = '';");
    browser.click("#history tbody tr:last-child button[data-action=back]");
    await_that("it is gone back to", LONG, || scheduler() == "strict_priority");
}

/// A long history shows its latest entries, and all of them on demand.
fn a_long_history_folds(lab: &Lab, pair: &Pair, browser: &Browser) {
    for n in 0..8 {
        let file = lab.policy(&if n % 2 == 0 { other() } else { three() });
        lab.sluice(&pair.a, &["apply", "a0", &file]).ok();
    }
    browser.script("location.reload();");
    browser.until(
        "only the latest are shown",
        &format!("{ENTRIES} === 10 && !document.getElementById('history-all').hidden"),
    );
    browser.click("#history-all");
    browser.until("all are shown", &format!("{ENTRIES} > 10 && document.getElementById('history-all').hidden"));
}

/// The table of forwards comes and goes with those of the policy.
fn forwards_are_listed(lab: &Lab) {
    let (pair, server) = begin(lab);
    let browser = Browser::start(&pair.a, Viewport::DESKTOP);
    open(&server, &browser);
    let card = "document.getElementById('forwards-card').hidden";
    browser.until("classes are listed", "document.querySelectorAll('#classes tbody tr').length > 1");
    browser.until("no forwards, no table", card);
    let mut policy = three();
    policy["forwards"] = json!([
        { "name": "web", "protocol": "both", "port": 8443, "targets": ["10.77.0.2:443", "10.77.0.3:443"] },
        { "name": "<b>game</b>", "protocol": "udp", "address": "10.77.0.1", "port": "100-109", "targets": "10.77.0.2" },
    ]);
    lab.sluice(&pair.a, &["apply", "a0", &lab.policy(&policy)]).ok();
    browser.until("the table is shown", &format!("!{card}"));
    let rows = browser.script(
        "return [...document.querySelectorAll('#forwards tbody tr')]
           .map((row) => [...row.cells].slice(0, 7).map((cell) => cell.innerText.replaceAll('\\n', ' ')));",
    );
    let expected = json!([
        ["<b>game</b>", "udp 10.77.0.1:100-109", "10.77.0.2:100-109", "0", "–", "0 bit/s", "0 bit/s"],
        ["web", "tcp, udp any:8443", "10.77.0.2:443 or 1 more", "0", "–", "0 bit/s", "0 bit/s"],
    ]);
    assert_eq!(rows, expected);
    lab.sluice(&pair.a, &["apply", "a0", &lab.policy(&three())]).ok();
    browser.until("the table has gone", card);
    drop(browser);
    super::end(lab, &pair, server);
}

fn phone_with_dark_theme(lab: &Lab) {
    let (pair, server) = begin(lab);
    let browser = Browser::start(&pair.a, Viewport::PHONE);
    open(&server, &browser);
    // The important columns fit: name, rate, queue and drops of each class, without scrolling sideways.
    browser.until("classes are listed", "document.querySelectorAll('#classes tbody tr').length > 1");
    let seen = browser.script(
        "const heads = [...document.querySelectorAll('#classes th')].filter((one) => one.offsetParent !== null);
         const box = document.querySelector('#classes').parentElement;
         return [heads.map((one) => one.textContent), box.scrollWidth <= box.clientWidth];",
    );
    assert_eq!(seen, json!([["class", "sent", "waiting", "wait, p99", "dropped"], true]));
    // By keyboard, the first stop skips the navigation.
    browser.keys("body", "\u{e004}");
    assert_eq!(browser.script("return document.activeElement.className;"), "skip");
    for view in ["overview", "rules", "flows", "policy"] {
        browser.script(&format!("location.hash = '#{view}';"));
        browser.until("the view is shown", &format!("!document.getElementById('view-{view}').hidden"));
        let width = browser.script("return document.documentElement.scrollWidth;").as_u64().unwrap_or(0);
        assert_eq!(width, 375, "{view} does not fit");
        // A screen reader cannot find a control without a name.
        let nameless = browser.script(
            "const shown = (one) => one.offsetParent !== null;
             const named = (one) => one.ariaLabel || one.getAttribute('aria-labelledby') || one.labels?.length > 0 || one.textContent.trim();
             return [...document.querySelectorAll('button, input, select, textarea, a[href]')].filter(shown)
               .filter((one) => !named(one)).map((one) => one.outerHTML);",
        );
        assert_eq!(nameless, json!([]), "{view}");
        let titles = browser
            .script("return [...document.querySelectorAll('h1')].filter((one) => one.offsetParent !== null).length;");
        assert_eq!(titles, 1, "{view} has one title");
    }
    let ground =
        browser.script("return getComputedStyle(document.documentElement).backgroundColor.match(/\\d+/g).map(Number);");
    let bright: f64 = ground.as_array().expect("a colour").iter().filter_map(Value::as_f64).sum();
    assert!(bright < 150.0, "the night is dark: {ground}");
    let landmarks = browser.script(
        "return ['header', 'nav', 'main', '[aria-live]'].map((one) => document.querySelectorAll(one).length > 0);",
    );
    assert_eq!(landmarks, json!([true, true, true, true]));
    // Tab leaves the editor.
    browser.keys("#text", "\u{e00c}");
    browser.keys("#text", "\u{e004}");
    assert_ne!(browser.script("return document.activeElement.id;"), "text", "Escape, then Tab, leaves the editor");
    assert!(browser.picture().len() > 5_000);
    drop(browser);
    super::end(lab, &pair, server);
}
