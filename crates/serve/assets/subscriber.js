// One subscriber: what it has, what passes, and what it must pass.

import * as api from "./api.js";
import { Chart } from "./charts.js";
import * as form from "./format.js";
import { drops, indented, lasts, used, wait } from "./subscribers.js";
import { make, Table, tile } from "./tables.js";

const QUANTITIES = ["sent_bps", "ceil_bps", "dropped_pps", "backlog_bytes", "wait_us"];
/** Moments that are drawn: an hour. */
const MOST_MOMENTS = 3600;
/** A longer time than this between two moments is a gap in the lines, seconds. */
const GAP_S = 2.5;
const element = (id) => document.getElementById(id);

const WAYS = { down: "Down, towards the subscriber", up: "Up, from the subscriber" };

/** The view; `now()` is { name, key }. */
export class Subscriber {
  constructor(now) {
    this.now = now;
    this.charts = [
      new Chart({ id: "chart-own-sent", title: "Sent; the ceiling dashed", form: form.rate, quantity: "sent_bps", second: "ceil_bps", secondName: "of at most", wide: true, least: 1000 }),
      new Chart({ id: "chart-own-wait", title: "Wait in the queue", form: form.micros, quantity: "wait_us", wide: true, least: 1000 }),
      new Chart({ id: "chart-own-drops", title: "Dropped packets", form: form.pps, quantity: "dropped_pps", least: 1 }),
      new Chart({ id: "chart-own-backlog", title: "Waiting in the queue", form: form.bytes, quantity: "backlog_bytes", least: 2048, binary: true }),
    ];
    element("subscriber-charts").append(...this.charts.map((chart) => chart.element));
    this.path = new Table(element("subscriber-path"), "What its packets pass", [
      { title: "from the link on", cell: ({ name, depth }) => indented(depth, name), className: "name" },
      { title: "at least", number: true, className: "less", cell: ({ one }) => form.maybe(one.rate_bps, form.rate) },
      { title: "at most", number: true, cell: ({ one }) => form.maybe(one.ceil_bps, form.rate) },
      { title: "sent", number: true, cell: ({ one }) => form.rate(one.sent_bps) },
      { title: "used", number: true, cell: ({ one }) => used(one) },
      { title: "waiting", number: true, className: "less", cell: ({ one }) => form.bytes(one.backlog.bytes) },
      { title: "dropped", number: true, className: "less", cell: ({ one }) => drops(one) },
    ], { key: (row) => `${row.depth} ${row.name}` });
  }

  /** Takes what happened in the last second. */
  async poll(rates) {
    const { name, key } = this.now();
    if (this.of !== `${name} ${key}`) this.begin(name, key);
    let own;
    try {
      own = await api.subscriber(name, key);
    } catch (problem) {
      if (problem.status !== 404) throw problem;
      if (this.of === `${name} ${key}`) this.miss(`${name} has no such subscriber. Another interface may have it.`);
      return;
    }
    if (this.of !== `${name} ${key}`) return;
    this.append(own);
    this.show(rates, own);
  }

  /** Begins with another subscriber, of which nothing is known yet. */
  begin(name, key) {
    this.of = `${name} ${key}`;
    this.store = { at: [], classes: [{ id: 0, name: key, place: 0, hidden: false, ...Object.fromEntries(QUANTITIES.map((quantity) => [quantity, []])) }] };
    element("subscriber-title").textContent = key;
    this.miss("A second, please.");
  }

  miss(why) {
    element("subscriber-hint").textContent = why;
    element("subscriber-known").hidden = true;
  }

  append(own) {
    const { at, classes: [line] } = this.store;
    const moment = own.at_ms / 1000;
    const last = at[at.length - 1];
    if (last >= moment) return;
    const put = (when, values) => {
      at.push(when);
      QUANTITIES.forEach((quantity) => line[quantity].push(values?.[quantity] ?? null));
    };
    if (moment - last > GAP_S) put(last + 1, null);
    put(moment, { ...own, backlog_bytes: own.backlog.bytes, wait_us: own.wait_ms === null ? null : own.wait_ms * 1e3 });
    while (at.length > MOST_MOMENTS) {
      at.shift();
      QUANTITIES.forEach((quantity) => line[quantity].shift());
    }
  }

  show(rates, own) {
    element("subscriber-known").hidden = false;
    element("subscriber-title").textContent = own.name;
    const { name } = this.now();
    const plan = own.plan === null ? "no plan" : `plan ${own.plan}`;
    element("subscriber-hint").textContent = rates.tree.is_class_tree
      ? `Class of packets that ${name} sends.`
      : `Key ${own.id}, ${plan}. ${WAYS[own.way]}: what departs from ${name}.`;
    const most = own.ceil_bps ? `${form.percent(own.used ?? 0)} of ${form.rate(own.ceil_bps)}` : "no ceiling of its own";
    const tiles = [
      ["Sent", form.rate(own.sent_bps), most, "", own.used],
      ["Waiting", form.bytes(own.backlog.bytes), `${form.exact(own.backlog.pkts)} packets`],
      ["Wait", wait(own), "of its last packets"],
      ["To send that", lasts(own) || form.none, own.ceil_bps ? "at the ceiling" : "no ceiling of its own"],
      ["Dropped", form.pps(own.dropped_pps), `${form.exact(own.dropped_pkts)} in all`, own.dropped_pps > 0 ? "warn" : ""],
      ["Sent in all", form.bytes(own.sent.bytes), `${form.exact(own.sent.pkts)} packets`],
      ["Marked in all", form.exact(own.marked_pkts), "packets"],
    ];
    element("subscriber-tiles").replaceChildren(...tiles.map(tile));
    this.store.classes[0].name = own.name;
    this.charts.forEach((chart) => chart.show(this.store));
    this.path.fill(this.passed(rates, own));
    const more = own.addresses_left_out > 0 ? [make("li", "quiet", `and ${form.exact(own.addresses_left_out)} more`)] : [];
    const texts = own.addresses.map((address) => make("li", "", address));
    const shown = [...texts, ...more];
    element("subscriber-addresses").replaceChildren(...shown.length > 0 ? shown : [make("li", "quiet", "none: nothing reaches its queue")]);
  }

  /** The link, the sites above the subscriber, the subscriber itself, and the classes inside it. */
  passed(rates, own) {
    const side = rates.directions.find((one) => one.direction === "egress");
    const sites = new Map(rates.tree.sites.map((one) => [one.name, one]));
    const above = [];
    for (let site = sites.get(own.site); site; site = sites.get(site.parent)) above.unshift({ name: site.name, one: site });
    const link = { name: "the link", one: { ...side, rate_bps: null, ceil_bps: side.rate_bps, used: side.use } };
    const down = [link, ...above, { name: own.name, one: own }].map((row, depth) => ({ ...row, depth }));
    const inside = own.classes.map((one) => ({ name: one.name, one, depth: down.length }));
    return [...down, ...inside];
  }
}
