// What an interface does now: tiles, charts, classes.

import * as api from "./api.js";
import { Chart } from "./charts.js";
import * as form from "./format.js";
import { make, Table, tile, withBar } from "./tables.js";

const QUANTITIES = ["sent_bps", "dropped_pps", "backlog_bytes", "p50_us", "p99_us"];
const UNMEASURED = "Engine tc does not tell how long packets wait. Engine qdisc (Linux 6.17 or newer) does.";

const charts = [
  new Chart({ id: "chart-sent", title: "Sent, by class", form: form.rate, quantity: "sent_bps", stacked: true, wide: true, least: 1000 }),
  new Chart({ id: "chart-wait", title: "Time in queue: p99, median dashed", form: form.micros, quantity: "p99_us", second: "p50_us", least: 100, missing: UNMEASURED }),
  new Chart({ id: "chart-drops", title: "Dropped packets", form: form.pps, quantity: "dropped_pps", least: 1 }),
  new Chart({ id: "chart-backlog", title: "Waiting in the queue", form: form.bytes, quantity: "backlog_bytes", stacked: true, least: 2048, binary: true }),
];

const swatch = (place) => make("i", `swatch c${place % 8}`);
const reasons = (drops) => Object.entries(drops).map(([reason, pps]) => `${reason.replaceAll("_", " ")} ${form.pps(pps)}`).join(", ");
/** A line for each; a dash for none. */
const list = (...texts) => {
  const lines = texts.filter(Boolean).map((text) => make("span", "line", text));
  return lines.length > 0 ? make("span", "", ...lines) : form.none;
};
/** What a class gets whatever the others do. */
const promise = (one) => list(
  one.rate_bps ? form.rate(one.rate_bps) : "",
  one.promised_share ? `${form.percent(one.promised_share)} of a full link` : "",
);
/** What a class may not exceed. */
const ceiling = (one) => list(
  one.ceil_bps ? form.rate(one.ceil_bps) : "",
  one.peak_bps ? `peak ${form.rate(one.peak_bps)}` : "",
  one.shared_ceil_bps ? `${form.rate(one.shared_ceil_bps)} shared` : "",
  one.flow_ceil_bps ? `a flow ${form.rate(one.flow_ceil_bps)}` : "",
);

/** The view; `now()` is { name, direction }. */
export class Overview {
  constructor(now) {
    this.now = now;
    this.span = 300;
    this.hidden = new Set();
    this.store = { at: [], classes: [] };
    document.getElementById("charts").append(...charts.map((chart) => chart.element));
    this.table = new Table(document.getElementById("classes"), "Classes", [
      { title: "class", cell: (one) => make("span", "", swatch(one.place), one.name), className: "name", sort: (one) => one.id },
      { title: "sent", number: true, cell: (one) => form.rate(one.sent_bps), sort: (one) => one.sent_bps },
      { title: "packets", number: true, className: "less", cell: (one) => form.pps(one.sent_pps), sort: (one) => one.sent_pps },
      { title: "share", number: true, className: "less", cell: (one) => withBar(form.maybe(one.share, form.percent), one.share ?? 0, one.place), sort: (one) => one.share ?? 0 },
      { title: "waiting", number: true, cell: (one) => withBar(form.bytes(one.backlog.bytes), one.backlog_fill, one.place), sort: (one) => one.backlog.bytes },
      { title: "wait, median", number: true, className: "less", cell: (one) => form.maybe(one.sojourn?.p50_us, form.micros), sort: (one) => one.sojourn?.p50_us ?? -1 },
      { title: "wait, p99", number: true, cell: (one) => form.maybe(one.sojourn?.p99_us, form.micros), sort: (one) => one.sojourn?.p99_us ?? -1 },
      { title: "dropped", number: true, cell: (one) => one.dropped_pps > 0 ? make("span", "tag bad", reasons(one.drops_pps) || form.pps(one.dropped_pps)) : form.none, sort: (one) => one.dropped_pps },
      { title: "marked", number: true, className: "less", cell: (one) => one.marked_pps > 0 ? form.pps(one.marked_pps) : form.none, sort: (one) => one.marked_pps },
      { title: "promised", cell: promise, className: "less" },
      { title: "at most", cell: ceiling, className: "less" },
      { title: "bucket", number: true, className: "less", cell: (one) => withBar(form.maybe(one.bucket_fill, form.percent), one.bucket_fill, one.place), sort: (one) => one.bucket_fill ?? 2 },
      { title: "sent in all", number: true, className: "less", cell: (one) => form.bytes(one.sent.bytes), sort: (one) => one.sent.bytes },
      { title: "dropped in all", number: true, className: "less", cell: (one) => form.exact(one.dropped.pkts), sort: (one) => one.dropped.pkts },
    ], { empty: "no classes" });
    for (const button of document.querySelectorAll("[data-span]")) {
      button.addEventListener("click", () => {
        this.span = Number(button.dataset.span);
        for (const other of document.querySelectorAll("[data-span]")) other.setAttribute("aria-pressed", String(other === button));
        this.load();
      });
    }
  }

  /** Fetches the past. */
  async load() {
    const { name, direction } = this.now();
    const columns = await api.series(name, this.span);
    const of = this.now();
    if (of.name !== name || of.direction !== direction) return;
    this.store = { at: columns.at_ms.map((ms) => ms / 1000), classes: [] };
    for (const one of columns.series) {
      if (one.direction !== direction || one.class === null) continue;
      this.store.classes.push({ id: one.class, name: `class ${one.class}`, ...Object.fromEntries(QUANTITIES.map((key) => [key, one[key]])) });
    }
    if (this.latest) this.show(this.latest, true);
  }

  /** Takes what happened in the last second. */
  show(rates, again = false) {
    this.latest = rates;
    const side = rates.directions.find((one) => one.direction === this.now().direction);
    if (!side) return;
    if (!again) this.append(rates.at_ms / 1000, side);
    side.classes.forEach((one, place) => {
      one.place = place;
      const kept = this.store.classes.find((other) => other.id === one.id);
      if (kept) Object.assign(kept, { name: one.name, place, hidden: this.hidden.has(one.id) });
    });
    // Classes of former policies are not shown.
    const store = { at: this.store.at, classes: side.classes.map((one) => this.store.classes.find((other) => other.id === one.id)).filter(Boolean) };
    this.legend(side.classes);
    this.tiles(rates, side);
    charts.forEach((chart) => chart.show(store));
    this.table.fill(side.classes);
  }

  /** Whether something lies between the last moment that is known and this one. */
  misses(at) {
    const known = this.store.at;
    return known.length > 0 && at - known[known.length - 1] > 1.6;
  }

  append(at, side) {
    const { store } = this;
    if (store.at.length > 0 && at <= store.at[store.at.length - 1]) return;
    store.at.push(at);
    for (const one of side.classes) {
      let kept = store.classes.find((other) => other.id === one.id);
      if (!kept) {
        kept = { id: one.id, name: one.name, ...Object.fromEntries(QUANTITIES.map((key) => [key, new Array(store.at.length - 1).fill(null)])) };
        store.classes.push(kept);
      }
      kept.sent_bps.push(one.sent_bps);
      kept.dropped_pps.push(one.dropped_pps);
      kept.backlog_bytes.push(one.backlog.bytes);
      kept.p50_us.push(one.sojourn?.p50_us ?? null);
      kept.p99_us.push(one.sojourn?.p99_us ?? null);
    }
    for (const kept of store.classes) {
      for (const key of QUANTITIES) if (kept[key].length < store.at.length) kept[key].push(null);
    }
    while (store.at.length > this.span) {
      store.at.shift();
      for (const kept of store.classes) QUANTITIES.forEach((key) => kept[key].shift());
    }
  }

  legend(classes) {
    const shape = classes.map((one) => `${one.id}/${one.name}`).join();
    if (shape === this.shape) return;
    this.shape = shape;
    document.getElementById("legend").replaceChildren(...classes.map((one) => {
      const button = make("button", "", swatch(one.place), one.name);
      button.type = "button";
      button.title = "show or hide in the charts";
      button.setAttribute("aria-pressed", String(!this.hidden.has(one.id)));
      button.addEventListener("click", () => {
        if (!this.hidden.delete(one.id)) this.hidden.add(one.id);
        button.setAttribute("aria-pressed", String(!this.hidden.has(one.id)));
        this.show(this.latest, true);
      });
      return make("li", "", button);
    }));
  }

  tiles(rates, side) {
    const waits = side.classes.filter((one) => one.sojourn);
    const worst = waits.reduce((most, one) => !most || one.sojourn.p99_us > most.sojourn.p99_us ? one : most, null);
    const dropping = side.classes.filter((one) => one.dropped_pps > 0).map((one) => one.name).join(", ");
    const used = side.used ?? side.use;
    const since = rates.at_ms / 1000 - rates.policy.applied_s;
    const tiles = [
      ["Sent", form.rate(side.sent_bps), side.rate_bps ? `${form.percent(used ?? 0)} of ${form.rate(side.rate_bps)}` : `${form.pps(side.sent_pps)} packets`, "", used],
      ["Dropped", form.pps(side.dropped_pps), dropping || "none", side.dropped_pps > 0 ? "warn" : ""],
      ["Waiting", form.bytes(side.backlog.bytes), `${form.exact(side.backlog.pkts)} packets`],
      ["Longest wait, p99", form.maybe(worst?.sojourn.p99_us, form.micros), worst ? worst.name : waits.length === 0 && rates.engine === "tc" ? "engine tc does not tell" : "nothing was sent"],
      ["Policy", rates.policy.name, `${rates.policy.scheduler.replaceAll("_", " ")}, for ${form.age(since)}`, "", undefined, "word"],
      ["Engine", rates.engine, rates.in_place ? `classified by ${rates.classifier}` : "its queues were replaced", rates.in_place ? "" : "bad", undefined, "word"],
    ];
    document.getElementById("tiles").replaceChildren(...tiles.map(tile));
  }
}
