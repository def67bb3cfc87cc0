// The sites of a policy with subscribers, as a tree, and a part of the list of subscribers.

import * as api from "./api.js";
import * as form from "./format.js";
import { make, Table, withBar } from "./tables.js";

/** So many subscribers are shown at a time. */
const PART = 50;
/** The most sites that are unfolded at first, and the most rows of the tree. */
const MOST_UNFOLDED = 40;
const MOST_ROWS = 1000;
/** How long nothing must be typed before it is searched for, ms. */
const QUIET_MS = 200;

const element = (id) => document.getElementById(id);
const pages = (views, key) => [...document.querySelectorAll(`[data-${views}]`)].map((button) => [button, button.dataset[key]]);

/** What each view is sorted by at first. */
const VIEWS = {
  all: { sort: "rate", empty: "none is found" },
  busiest: { sort: "rate", empty: "none of them sends" },
  queued: { sort: "queue", empty: "nothing waits in their queues" },
  slowest: { sort: "wait", empty: "none of them sends, or the engine does not measure waits" },
  at_ceiling: { sort: "used", empty: "none of them is at its ceiling" },
};

/** Where a subscriber's own view is. */
export const place = (id) => `#subscribers/${encodeURIComponent(id)}`;
/** How long a queue lasts at the ceiling. */
export const lasts = (one) => one.ceil_bps && one.backlog.bytes > 0 ? form.micros(one.backlog.bytes * 8e6 / one.ceil_bps) : "";
/** The wait of its packets in the queue. */
export const wait = (one) => form.maybe(one.wait_ms, (ms) => form.micros(ms * 1e3));
/** Drops of the last second. */
export const drops = (one) => one.dropped_pps > 0 ? make("span", "tag bad", form.pps(one.dropped_pps)) : form.none;
/** The used part of the ceiling. */
export const used = (one) => withBar(form.maybe(one.used, form.percent), one.used);

/** A name at its depth in the tree. */
export function indented(depth, ...children) {
  const name = make("span", "branch", ...children);
  name.style.paddingLeft = `${depth * 0.9}rem`;
  return name;
}

function button(action, site, className, text, states) {
  const made = make("button", className, text);
  made.type = "button";
  made.dataset.action = action;
  made.dataset.site = site;
  Object.entries(states).forEach(([name, value]) => made.setAttribute(name, value));
  return made;
}

/** The tree of sites; `chosen(site)` is called with the site whose subscribers are wanted, or with "" for all. */
export class Sites {
  constructor(chosen) {
    this.folded = null;
    this.site = "";
    this.table = new Table(element("sites"), "Sites", [
      { title: "site", ofClasses: "class", cell: (row) => this.name(row), className: "name" },
      { title: "subscribers", ofClasses: "classes", number: true, className: "less", cell: (row) => form.maybe(row.one.subscribers, form.exact) },
      { title: "sent", number: true, cell: ({ one }) => form.rate(one.sent_bps) },
      { title: "at most", number: true, className: "less", cell: ({ one }) => form.maybe(one.ceil_bps, form.rate) },
      { title: "used", number: true, cell: ({ one }) => used(one) },
      { title: "waiting", number: true, className: "less", cell: ({ one }) => form.bytes(one.backlog.bytes) },
      { title: "dropped", number: true, cell: ({ one }) => drops(one) },
    ], { key: (row) => row.key });
    element("sites").addEventListener("click", (event) => {
      const pressed = event.target.closest("button[data-action]");
      if (!pressed) return;
      const { action, site } = pressed.dataset;
      if (action === "fold") { if (!this.folded.delete(site)) this.folded.add(site); } else { this.site = site; chosen(site); }
      this.show(this.rates);
    });
    element("sites-unfold").addEventListener("click", () => { this.folded = new Set(); this.show(this.rates); });
    element("sites-fold").addEventListener("click", () => { this.folded = this.parents(); this.show(this.rates); });
  }

  /** The names of the sites with sites below them. */
  parents() { return new Set(this.rates.tree.sites.map((one) => one.parent).filter((parent) => parent !== null)); }

  name({ key, name, depth, site, folds }) {
    if (site === undefined) return indented(depth, make("span", "quiet", name));
    const folded = this.folded.has(site);
    const fold = folds
      ? button("fold", site, "fold", folded ? "▸" : "▾", { "aria-expanded": String(!folded), "aria-label": `Sites below ${name}` })
      : make("span", "fold");
    return indented(depth, key === "link" ? "" : fold, button("choose", site, "pick-site", name, {
      "aria-pressed": String(site === this.site), title: "show what is below it",
    }));
  }

  show(rates) {
    this.rates = rates;
    const { tree } = rates;
    this.folded ??= tree.sites.length > MOST_UNFOLDED ? this.parents() : new Set();
    const side = rates.directions.find((one) => one.direction === "egress");
    const below = new Map();
    for (const one of tree.sites) below.set(one.parent, [...below.get(one.parent) ?? [], one]);
    const link = { ...side, subscribers: tree.count, ceil_bps: side.rate_bps, used: side.use };
    const rows = [{ key: "link", name: "the link", depth: 0, site: "", folds: false, one: link }];
    const add = (parent, depth) => {
      for (const one of below.get(parent) ?? []) {
        const folds = below.has(one.name);
        rows.push({ key: `site ${one.name}`, name: one.name, depth, site: one.name, folds, one });
        if (folds && !this.folded.has(one.name)) add(one.name, depth + 1);
      }
    };
    add(null, 1);
    const hint = element("sites-hint");
    hint.textContent = rows.length > MOST_ROWS ? `The first ${form.exact(MOST_ROWS)} of ${form.exact(rows.length)} rows.` : "";
    hint.hidden = hint.textContent === "";
    for (const id of ["sites-unfold", "sites-fold"]) element(id).hidden = tree.sites.every((one) => one.parent === null);
    this.table.fill([...rows.slice(0, MOST_ROWS), { key: "nobody", name: tree.is_class_tree ? "unclassified" : "addresses of no subscriber", depth: 1, one: tree.nobody }]);
  }
}

/** A part of the list of subscribers; `now()` is { name }. */
export class Subscribers {
  constructor(now) {
    this.now = now;
    this.query = { search: "", site: "", view: "all", sort: "rate", order: "descending", offset: 0, limit: PART };
    this.number = 0;
    this.sites = new Sites((site) => this.ask({ site }));
    this.columns = [
      { title: "subscriber", ofClasses: "class", cell: (one) => this.name(one), className: "name", sort: "name" },
      { title: "site", ofClasses: "below", className: "less", cell: (one) => one.site ?? make("span", "quiet", "the link") },
      { title: "plan", className: "less of-plans", cell: (one) => one.plan ?? make("span", "quiet", form.none) },
      { title: "sent", number: true, cell: (one) => form.rate(one.sent_bps), sort: "rate" },
      { title: "at most", number: true, className: "less", cell: (one) => form.maybe(one.ceil_bps, form.rate) },
      { title: "used", number: true, cell: used, sort: "used" },
      { title: "waiting", number: true, cell: (one) => this.waiting(one), sort: "queue" },
      { title: "wait", number: true, className: "less", cell: wait, sort: "wait" },
      { title: "dropped", number: true, cell: drops, sort: "drops" },
    ];
    this.table = new Table(element("subscribers"), "Subscribers", this.columns, {
      sort: this.column("rate", true), key: (one) => one.id,
      reorder: (sort, down) => this.ask({ sort, order: down ? "descending" : "ascending" }),
    });
    for (const [one, view] of pages("subscribers-view", "subscribersView")) {
      one.addEventListener("click", () => {
        const { sort } = VIEWS[view];
        this.table.order = this.column(sort, true);
        this.ask({ view, sort, order: "descending" });
      });
    }
    element("subscribers-find").addEventListener("input", (event) => {
      clearTimeout(this.typing);
      this.typing = setTimeout(() => this.ask({ search: event.target.value.trim() }), QUIET_MS);
    });
    element("subscribers-everywhere").addEventListener("click", () => {
      this.sites.site = "";
      this.sites.show(this.sites.rates);
      element("subscribers-find").focus();
      this.ask({ site: "" });
    });
    element("subscribers-before").addEventListener("click", () => this.ask({ offset: Math.max(0, this.query.offset - PART) }));
    element("subscribers-after").addEventListener("click", () => this.ask({ offset: this.query.offset + PART }));
  }

  column(sort, down) { return { column: this.columns.findIndex((one) => one.sort === sort), down }; }

  name(one) {
    const link = make("a", "", one.id);
    link.href = place(one.id);
    link.dataset.action = "open";
    return one.name === one.id ? link : make("span", "", link, make("span", "called", one.name));
  }

  waiting(one) {
    const time = lasts(one);
    return time ? make("span", "", form.bytes(one.backlog.bytes), make("span", "line quiet", time)) : form.bytes(one.backlog.bytes);
  }

  /** Takes what happened in the last second. */
  async poll(rates) {
    // A policy may have lost the site.
    if (this.query.site && !rates.tree.sites.some((one) => one.name === this.query.site)) {
      this.query.site = "";
      this.sites.site = "";
    }
    this.sites.show(rates);
    await this.load();
  }

  /** Changes what is asked for; another list begins at its top. */
  ask(change) {
    Object.assign(this.query, { offset: 0 }, change);
    this.load().catch((problem) => this.tell(problem.message));
  }

  async load() {
    this.number += 1;
    const { number } = this;
    const { name } = this.now();
    const part = await api.subscribers(name, this.query);
    // Another answer was asked for meanwhile.
    if (number !== this.number || name !== this.now().name) return;
    if (part.found > 0 && this.query.offset >= part.found) {
      this.ask({ offset: Math.floor((part.found - 1) / PART) * PART });
      return;
    }
    this.show(part);
  }

  show(part) {
    const { site, view, offset } = this.query;
    for (const [one, own] of pages("subscribers-view", "subscribersView")) one.setAttribute("aria-pressed", String(own === view));
    element("subscribers-site").hidden = site === "";
    element("subscribers-site-name").textContent = site;
    this.table.empty = VIEWS[view].empty;
    this.table.fill(part.subscribers);
    const last = offset + part.subscribers.length;
    this.tell(part.found === 0 ? "" : `${form.exact(offset + 1)} to ${form.exact(last)} of ${form.exact(part.found)}`);
    element("subscribers-before").disabled = offset === 0;
    element("subscribers-after").disabled = last >= part.found;
    element("subscribers-pages").hidden = part.found <= PART && offset === 0;
    element("subscribers-count").textContent = `${form.exact(part.found)} of ${form.exact(part.count)}`;
  }

  tell(text) { element("subscribers-part").textContent = text; }
}
