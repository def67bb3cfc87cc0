// Rules with their hits, forwards, and flows.

import * as api from "./api.js";
import * as form from "./format.js";
import { make, Table, withBar } from "./tables.js";

/** A line for each text that is not empty. */
const list = (...texts) => make("span", "", ...texts.filter(Boolean).map((text) => make("span", "line", text)));

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

/** The most forwards that are listed. */
const MOST_FORWARDS = 200;

/** The forwards of the policy in force. */
export class Forwards {
  constructor() {
    const refused = (one) => Object.entries(one.refusals_pps).map(([reason, pps]) => `${reason.replaceAll("_", " ")} ${form.pps(pps)}`).join(", ");
    this.table = new Table(document.getElementById("forwards"), "Forwards", [
      { title: "forward", cell: (one) => one.name, className: "name", sort: (one) => one.name },
      { title: "listens on", className: "less", cell: (one) => list(one.protocol === "both" ? "tcp, udp" : one.protocol, one.listen) },
      { title: "goes to", className: "less", cell: (one) => list(one.targets[0], one.targets.length > 1 ? `or ${one.targets.length - 1} more` : "") },
      { title: "open", number: true, cell: (one) => form.exact(one.open), sort: (one) => one.open },
      { title: "new", number: true, cell: (one) => one.opened_per_s > 0 ? form.pps(one.opened_per_s) : form.none, sort: (one) => one.opened_per_s },
      { title: "from clients", number: true, cell: (one) => form.rate(one.from_clients_bps), sort: (one) => one.from_clients_bps },
      { title: "from targets", number: true, cell: (one) => form.rate(one.from_targets_bps), sort: (one) => one.from_targets_bps },
      { title: "refused", number: true, cell: (one) => one.refused_pps > 0 ? make("span", "tag bad", refused(one)) : form.none, sort: (one) => one.refused_pps },
      { title: "opened", number: true, className: "less", cell: (one) => form.exact(one.opened), sort: (one) => one.opened },
      { title: "passed on", number: true, className: "less", cell: (one) => form.bytes(one.from_clients.bytes + one.from_targets.bytes), sort: (one) => one.from_clients.bytes + one.from_targets.bytes },
    ]);
  }

  show(forwards) {
    const of = (one) => one.from_clients_bps + one.from_targets_bps;
    const shown = forwards.length > MOST_FORWARDS ? [...forwards].sort((a, b) => of(b) - of(a)).slice(0, MOST_FORWARDS) : forwards;
    const hint = document.getElementById("forwards-hint");
    hint.hidden = shown.length === forwards.length;
    hint.textContent = `The ${MOST_FORWARDS} of ${form.exact(forwards.length)} that pass on most.`;
    document.getElementById("forwards-card").hidden = forwards.length === 0;
    this.table.fill(shown);
  }
}

/** The rules of the policy in force. */
export class Rules {
  constructor() {
    this.finds = find("rules-find", () => this.latest && this.show(this.latest));
    this.table = new Table(document.getElementById("rules"), "Rules", [
      { title: "priority", number: true, className: "tight less", cell: ({ rule }) => form.maybe(rule.priority, String) },
      { title: "rule", cell: ({ rule }) => rule.name || make("span", "quiet", "unnamed"), className: "name" },
      { title: "matches", cell: ({ rule }) => rule.matches || form.none, className: "wrap" },
      { title: "class", cell: ({ rule }) => rule.class === null ? form.none : label(this.latest, rule.class), className: "name" },
      { title: "now", number: true, className: "less", cell: ({ rule }) => rule.matched_pps > 0 ? form.pps(rule.matched_pps) : form.none, sort: ({ rule }) => rule.matched_pps },
      { title: "packets", number: true, cell: ({ rule, part }) => this.hits(rule, part), sort: ({ rule }) => rule.matched?.pkts ?? 0 },
      { title: "bytes", number: true, className: "less", cell: ({ rule }) => form.maybe(rule.matched?.bytes, form.bytes), sort: ({ rule }) => rule.matched?.bytes ?? 0 },
    ], { empty: "no rule is called so" });
  }

  hits(rule, part) {
    if (!rule.matched) return form.none;
    if (rule.matched.pkts === 0) return make("span", "quiet", "0");
    return withBar(form.exact(rule.matched.pkts), part);
  }

  show(rates) {
    this.latest = rates;
    const most = Math.max(1, ...rates.rules.map((rule) => rule.matched.pkts));
    const rows = rates.rules.map((rule) => ({ rule, part: rule.matched.pkts / most }));
    rows.push({ rule: { name: "(matched none)", priority: null, class: null, matched_pps: rates.unmatched_pps, matched: null }, part: 0 });
    this.table.fill(rows.filter(({ rule }) => this.finds(rule.name, rule.matches ?? "", rule.priority ?? "", rule.class === null ? "" : className(rates, rule.class))));
  }
}

const PROTOCOLS = { 1: "ICMP", 2: "IGMP", 6: "TCP", 17: "UDP", 41: "IPv6", 47: "GRE", 50: "ESP", 58: "ICMPv6", 132: "SCTP", 136: "UDP-Lite", 256: "neighbours" };
const end = (address, port) => port === null ? address : address.includes(":") ? `[${address}]:${port}` : `${address}:${port}`;
const protocol = (number) => PROTOCOLS[number] ?? `protocol ${number}`;
const words = (one) => [protocol(one.protocol), end(one.src, one.src_port), end(one.dst, one.dst_port), one.class_name, one.rule ?? ""];

/** Who uses the link. */
export class Flows {
  constructor(now) {
    this.now = now;
    this.finds = find("flows-find", () => this.latest && this.show());
    this.table = new Table(document.getElementById("flows"), "Flows", [
      { title: "from", cell: (one) => end(one.src, one.src_port), className: "name", sort: (one) => end(one.src, one.src_port) },
      { title: "to", cell: (one) => end(one.dst, one.dst_port), className: "name", sort: (one) => end(one.dst, one.dst_port) },
      { title: "protocol", className: "less", cell: (one) => protocol(one.protocol), sort: (one) => protocol(one.protocol) },
      { title: "class", cell: (one) => label(this.rates, one.class), className: "name", sort: (one) => one.class },
      { title: "rule", cell: (one) => one.rule ?? make("span", "quiet", "an earlier policy's"), className: "name less" },
      { title: "now", number: true, cell: (one) => one.bps > 0 ? form.rate(one.bps) : make("span", "quiet", "silent"), sort: (one) => one.bps },
      { title: "packets", number: true, className: "less", cell: (one) => one.pps > 0 ? form.pps(one.pps) : form.none, sort: (one) => one.pps },
      { title: "in all", number: true, cell: (one) => form.bytes(one.bytes), sort: (one) => one.bytes },
      { title: "seen for", number: true, className: "less", cell: (one) => form.age(one.age_s), sort: (one) => one.age_s },
    ], { sort: { column: 5, down: true }, empty: "no flow is so" });
  }

  async poll(rates) {
    this.rates = rates;
    const { name } = this.now();
    try {
      this.latest = await api.flows(name);
    } catch (problem) {
      if (problem.status !== 503) throw problem;
      document.getElementById("flows-hint").textContent = "Flows are read only while a page shows them: a second, please.";
      return;
    }
    this.show();
  }

  show() {
    const { top, classes, anomalies, kept } = this.latest;
    const arriving = this.now().direction === "ingress";
    const sum = classes.filter((one) => one.arriving === arriving);
    const text = sum.map((one) => `${one.class_name} ${form.exact(one.flows)} (${form.exact(one.active)} send)`).join(", ");
    document.getElementById("flows-hint").textContent = kept
      ? `As offered, before the queues. ${text ? `Flows by class: ${text}.` : "No flow is known in this direction yet."}`
      : "The policy in force keeps no flows: its key flow_table says how many.";
    this.table.fill(top.filter((one) => one.arriving === arriving && this.finds(...words(one))));
    document.getElementById("strange-card").hidden = anomalies.length === 0;
    document.getElementById("strange").replaceChildren(...anomalies.map((one) => make("li", "", make("span", "tag warn", one.kind.replaceAll("_", " ")), ` ${one.source}: ${one.reason}`)));
  }
}
