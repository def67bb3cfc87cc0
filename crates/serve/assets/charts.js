// A chart over time, with its numbers as a table for those who cannot see it. Drawn by uPlot.

import { clock, maybe, none } from "./format.js";
import { make, Table } from "./tables.js";

const ROWS = 15;
/** Steps of an axis of bytes. */
const BINARY = Array.from({ length: 40 }, (_, n) => 2 ** n);
const styles = () => getComputedStyle(document.documentElement);
const variable = (name) => styles().getPropertyValue(name).trim();

/** The colour of the class at a place of the policy. */
export const colour = (place) => variable(`--c${place % 8}`);

/** Room for the axis: nothing is cut off, whatever the numbers. */
const axisSize = (plot, values) => Math.max(44, ...(values ?? []).map((text) => 14 + 7 * (text ?? "").length));

/**
 * `form` writes a value; `quantity` is the key of a series that is shown; `stacked` piles classes up; `second` is a
 * quantity shown as a dashed line in the same colour, and called `secondName`; `least` is the least top of the axis; `binary`:
 * its steps are powers of two; `missing` is said instead of a chart of nothing.
 */
export class Chart {
  constructor({ id, title, form, quantity, second = null, secondName = "median", stacked = false, wide = false, least = 1, missing = "", binary = false }) {
    Object.assign(this, { form, quantity, second, secondName, stacked, least, missing, title, binary });
    this.place = make("div", "chart");
    this.place.setAttribute("role", "img");
    this.reading = make("p", "reading");
    this.reading.setAttribute("aria-hidden", "true");
    this.nothing = make("p", "none", missing);
    this.nothing.hidden = true;
    this.tableElement = make("table");
    this.tableElement.id = `${id}-numbers`;
    this.details = make("details", "", make("summary", "", "Numbers"), make("div", "scroll", this.tableElement));
    const heading = make("h2", "", title);
    heading.id = `${id}-title`;
    this.element = make("section", wide ? "card wide" : "card", heading, this.reading, this.place, this.nothing, this.details);
    this.element.id = id;
    this.element.setAttribute("aria-labelledby", heading.id);
    this.details.addEventListener("toggle", () => this.numbers());
    new ResizeObserver(() => this.resize()).observe(this.place);
    matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => { this.build(); this.draw(); });
  }

  /** `store`: { at: seconds[], classes: [{ id, name, place, hidden, [quantity]: number[] }] } */
  show(store) {
    const shape = store.classes.map(({ id, name, place, hidden }) => `${id}/${name}/${place}/${hidden}`).join();
    this.store = store;
    const known = !this.missing || store.classes.some((one) => one[this.quantity].some((value) => value !== null));
    this.nothing.hidden = known;
    this.place.hidden = !known;
    this.details.hidden = !known;
    this.reading.hidden = !known;
    if (shape !== this.shape || !this.plot) { this.shape = shape; this.build(); }
    this.draw();
    this.numbers();
  }

  get shown() { return this.store.classes.filter((one) => !one.hidden); }

  build() {
    this.plot?.destroy();
    this.plot = null;
    if (!this.store || this.place.clientWidth === 0) return;
    const line = (one, dash) => ({
      label: one.name, stroke: colour(one.place), width: dash ? 1 : 1.75, dash, points: { show: false }, spanGaps: false,
      fill: this.stacked ? undefined : null,
    });
    const series = [{}];
    const bands = [];
    if (this.stacked) {
      const pile = [...this.shown].reverse();
      pile.forEach((one, n) => {
        const wash = `${colour(one.place)}${matchMedia("(prefers-color-scheme: dark)").matches ? "59" : "4d"}`;
        const last = n === pile.length - 1;
        series.push({ ...line(one), fill: last ? wash : undefined });
        if (!last) bands.push({ series: [n + 1, n + 2], fill: wash });
      });
    } else {
      this.shown.forEach((one) => series.push(line(one)));
      if (this.second) this.shown.forEach((one) => series.push(line(one, [4, 4])));
    }
    const axis = { stroke: variable("--soft"), grid: { stroke: variable("--line"), width: 1 }, ticks: { show: false }, font: "12px system-ui, sans-serif" };
    const options = {
      width: this.place.clientWidth, height: this.place.clientHeight, series, bands,
      legend: { show: false },
      padding: [10, 26, 0, 0],
      cursor: { sync: { key: "time" }, points: { size: 6 }, drag: { x: false, y: false } },
      scales: { x: { time: true }, y: { range: (_, low, high) => [0, Math.max(this.least, (high ?? 0) * 1.08)] } },
      axes: [
        { ...axis, space: 80, size: 32, values: (_, at) => at.map((s) => clock(s * 1000)) },
        { ...axis, space: 34, size: axisSize, ...(this.binary ? { incrs: BINARY } : {}), values: (_, all) => all.map((value) => this.form(value)) },
      ],
      hooks: { setCursor: [(plot) => this.read(plot.cursor.idx)] },
    };
    this.plot = new uPlot(options, this.data(), this.place);
  }

  data() {
    const { at } = this.store;
    if (this.stacked) {
      const sum = new Array(at.length).fill(0);
      const pile = this.shown.map((one) => one[this.quantity].map((value, n) => { sum[n] += value ?? 0; return sum[n]; }));
      return [at, ...pile.reverse()];
    }
    const second = this.second ? this.shown.map((one) => one[this.second]) : [];
    return [at, ...this.shown.map((one) => one[this.quantity]), ...second];
  }

  draw() {
    if (!this.plot) { this.build(); return; }
    this.plot.setData(this.data());
    this.read(this.plot.cursor.idx);
  }

  resize() {
    if (this.place.clientWidth === 0) return;
    if (this.plot) this.plot.setSize({ width: this.place.clientWidth, height: this.place.clientHeight });
    else if (this.store) this.build();
  }

  /** Values at a place in time, or the latest, as a line; it is the chart's name for screen readers too. */
  read(place) {
    const { at } = this.store;
    const n = place ?? at.length - 1;
    if (n < 0 || at[n] === undefined) return;
    const values = this.shown.filter((one) => one[this.quantity][n] !== null)
      .map((one) => [one.name, one[this.quantity][n]]).filter(([, value]) => value > 0);
    const text = values.map(([name, value]) => `${name} ${this.form(value)}`).join(" · ") || "nothing";
    this.reading.textContent = `${clock(at[n] * 1000)}  ${text}`;
    if (place === null || place === undefined) this.place.setAttribute("aria-label", `${this.title}, now: ${text}. Numbers are in the table below it.`);
  }

  numbers() {
    if (!this.details.open || !this.store) return;
    const classes = this.store.classes;
    const shape = classes.map((one) => one.name).join();
    if (this.tableShape !== shape) {
      this.tableShape = shape;
      const cell = (one) => (n) => {
        const first = maybe(one()[this.quantity][n], this.form);
        return this.second && first !== none ? `${first} (${this.secondName} ${maybe(one()[this.second][n], this.form)})` : first;
      };
      this.table = new Table(this.tableElement, this.title, [
        { title: "time", cell: (n) => clock(this.store.at[n] * 1000) },
        ...classes.map((one, place) => ({ title: one.name, number: true, cell: cell(() => this.store.classes[place]) })),
      ]);
    }
    const { at } = this.store;
    this.table.fill([...at.keys()].slice(-ROWS).reverse());
  }
}
