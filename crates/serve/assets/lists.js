// Rules with their hits, and flows.

import * as form from "./format.js";
import { make, Table } from "./tables.js";

const find = (id, refill) => {
  const field = document.getElementById(id);
  field.addEventListener("input", refill);
  return (...texts) => texts.join(" ").toLowerCase().includes(field.value.trim().toLowerCase());
};

/** A class by its colour and name. */
const label = (rates, id) => {
  const classes = rates.directions[0]?.classes ?? [];
  const place = classes.findIndex((one) => one.id === id);
  if (place < 0) return `class ${id}`;
  return make("span", "", make("i", `swatch c${place % 8}`), classes[place].name);
};
const className = (rates, id) => rates.directions[0]?.classes.find((one) => one.id === id)?.name ?? `class ${id}`;

/** The rules of the policy in force. */
export class Rules {
  constructor() {
    this.finds = find("rules-find", () => this.latest && this.show(this.latest));
    this.table = new Table(document.getElementById("rules"), "Rules", [
      { title: "priority", number: true, className: "tight", cell: ({ rule }) => form.maybe(rule.priority, String) },
      { title: "rule", cell: ({ rule }) => rule.name || make("span", "quiet", "unnamed"), className: "name" },
      { title: "class", cell: ({ rule }) => rule.class === null ? form.none : label(this.latest, rule.class), className: "name" },
      { title: "now", number: true, cell: ({ rule }) => rule.matched_pps > 0 ? form.pps(rule.matched_pps) : form.none, sort: ({ rule }) => rule.matched_pps },
      { title: "packets", number: true, cell: ({ rule, part }) => this.hits(rule, part), sort: ({ rule }) => rule.matched?.pkts ?? 0 },
      { title: "bytes", number: true, cell: ({ rule }) => form.maybe(rule.matched?.bytes, form.bytes), sort: ({ rule }) => rule.matched?.bytes ?? 0 },
    ], { empty: "no rule is called so" });
  }

  hits(rule, part) {
    if (!rule.matched) return form.none;
    const fill = make("i");
    fill.style.width = `${(part * 100).toFixed(1)}%`;
    if (rule.matched.pkts === 0) return make("span", "quiet", "0");
    return make("span", "", form.exact(rule.matched.pkts), make("span", "bar", fill));
  }

  show(rates) {
    this.latest = rates;
    const most = Math.max(1, ...rates.rules.map((rule) => rule.matched.pkts));
    const rows = rates.rules.map((rule) => ({ rule, part: rule.matched.pkts / most }));
    rows.push({ rule: { name: "(matched none)", priority: null, class: null, matched_pps: rates.unmatched_pps, matched: null }, part: 0 });
    this.table.fill(rows.filter(({ rule }) => this.finds(rule.name, rule.priority ?? "", rule.class === null ? "" : className(rates, rule.class))));
  }
}
