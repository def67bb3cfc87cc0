// The page: which interface, which view, and what is asked every second.

import * as api from "./api.js";
import { Flows, Forwards, Rules } from "./lists.js";
import { Overview } from "./overview.js";
import { Policy } from "./policy.js";
import { Subscriber } from "./subscriber.js";
import { Subscribers } from "./subscribers.js";
import { setLabels } from "./tables.js";

const EVERY_MS = 1000;
const VIEWS = ["overview", "subscribers", "rules", "flows", "policy"];
const element = (id) => document.getElementById(id);
const now = { name: null, direction: "egress", view: "overview", key: null, paused: false };

const overview = new Overview(() => now);
const forwards = new Forwards();
const subscribers = new Subscribers(() => now);
const subscriber = new Subscriber(() => now);
const rules = new Rules();
const flows = new Flows(() => now);
const policy = new Policy(() => now, poll, announce);

function announce(text) { element("announce").textContent = text; }

function link(state, text) {
  element("link").dataset.state = state;
  if (element("link-text").textContent !== text) element("link-text").textContent = text;
}

function problem(what, cure) {
  element("problem").hidden = !what;
  element("problem-what").textContent = what ?? "";
  element("problem-cure").textContent = cure ?? "";
  for (const view of VIEWS) element(`view-${view}`).hidden = Boolean(what) || view !== now.view;
}

/** The interfaces there are; the one shown stays if it is still there. */
async function look() {
  const all = (await api.interfaces()).filter((one) => one.up);
  const names = all.map((one) => one.name);
  const select = element("interface");
  if (names.join() !== [...select.options].map((one) => one.value).join()) {
    select.replaceChildren(...names.map((name) => new Option(name, name)));
  }
  if (names.length === 0) {
    now.name = null;
    problem("No interface is managed here", "`sluice up IFACE --policy gaming --rate 19mbit` begins; this page then shows it by itself.");
    return;
  }
  if (!names.includes(now.name)) await choose(names[0]);
  select.value = now.name;
}

async function choose(name) {
  now.name = name;
  document.title = `${name} · Sluice`;
  await overview.load();
  if (now.view === "policy") await policy.open();
}

let generation = null;

async function poll() {
  if (!now.name) { await look(); if (!now.name) { link("live", "waiting for an interface"); return; } }
  const rates = await api.rates(now.name).catch((error) => {
    if (error.status === 503) return null;
    if (error.status === 404) now.name = null;
    throw error;
  });
  if (!rates) return;
  problem(null);
  pending(rates);
  element("subscribers-tab").hidden = !rates.tree;
  setLabels(Boolean(rates.tree?.is_class_tree));
  if (generation !== null && generation !== rates.policy.generation) {
    announce(`${now.name} has another policy: ${rates.policy.name}`);
    if (now.view === "policy") policy.refresh();
  }
  generation = rates.policy.generation;
  if (now.paused) { link("paused", "paused"); return; }
  link("live", "live");
  // What was missed between two answers is fetched.
  if (overview.misses(rates.at_ms / 1000)) await overview.load();
  if (now.view === "overview") overview.show(rates); else overview.append(rates.at_ms / 1000, rates.directions.find((one) => one.direction === now.direction));
  if (now.view === "overview") forwards.show(rates.forwards);
  if (now.view === "subscribers") await tree(rates);
  if (now.view === "rules") rules.show(rates);
  if (now.view === "flows") await flows.poll(rates);
}

/** The subscribers, or the one that the address names. */
async function tree(rates) {
  const isOne = now.key !== null;
  element("subscribers-none").hidden = Boolean(rates.tree);
  element("subscribers-all").hidden = !rates.tree || isOne;
  element("subscriber").hidden = !rates.tree || !isOne;
  if (rates.tree) await (isOne ? subscriber : subscribers).poll(rates);
}

/** A change that waits to be confirmed, and the time that is left. */
let given = null;

function pending(rates) {
  const waits = rates.unconfirmed;
  const bar = element("pending");
  if (!waits) { bar.hidden = true; given = null; return; }
  if (bar.hidden) announce(`The policy ${rates.policy.name} is taken back in ${waits.left_s} seconds unless you keep it.`);
  given = Math.max(given ?? 0, waits.left_s, 1);
  bar.hidden = false;
  element("pending-left").textContent = waits.left_s;
  element("ring").style.strokeDashoffset = 100 - 100 * waits.left_s / given;
  element("pending-text").textContent = `${rates.policy.name} is in force on ${now.name}. Unless you keep it, ${waits.former === rates.policy.name ? `the former ${waits.former}` : waits.former} comes back.`;
}

async function settle(action, done) {
  try {
    await action(now.name);
    announce(done);
    element("applied").textContent = done;
    element("applied").dataset.state = "good";
  } catch (error) {
    announce(`${error.message}. ${error.cure}`);
    element("applied").textContent = `${error.message}\n${error.cure}`;
    element("applied").dataset.state = "bad";
  }
  await poll();
  if (now.view === "policy") await policy.refresh();
}

element("confirm").addEventListener("click", () => settle(api.confirm, "The change is kept."));
element("revert").addEventListener("click", () => settle(api.revert, "The change is taken back."));
element("interface").addEventListener("change", (event) => guard(() => choose(event.target.value)));
element("pause").addEventListener("click", () => {
  now.paused = !now.paused;
  element("pause").setAttribute("aria-pressed", String(now.paused));
  element("pause").textContent = now.paused ? "Go on" : "Pause";
  if (!now.paused) guard(() => overview.load());
});
for (const button of document.querySelectorAll("[data-direction]")) {
  button.addEventListener("click", () => {
    now.direction = button.dataset.direction;
    for (const other of document.querySelectorAll("[data-direction]")) other.setAttribute("aria-pressed", String(other === button));
    guard(() => overview.load());
  });
}

/** The key behind a view's name in the address; null if there is none that can be read. */
function keyOf(text) {
  try {
    return text ? decodeURIComponent(text) : null;
  } catch {
    return null;
  }
}

function route() {
  const [wanted, key] = location.hash.slice(1).split("/");
  now.view = VIEWS.includes(wanted) ? wanted : "overview";
  now.key = keyOf(key);
  // Subscribers are those of departures alone.
  element("direction").hidden = now.view === "subscribers";
  for (const tab of document.querySelectorAll(".tabs a")) {
    if (tab.hash === `#${now.view}`) tab.setAttribute("aria-current", "page"); else tab.removeAttribute("aria-current");
  }
  if (element("problem").hidden) problem(null);
  if (now.name) guard(async () => { if (now.view === "policy") await policy.open(); else await poll(); });
}

async function guard(work) {
  try {
    await work();
  } catch (error) {
    if (error instanceof TypeError) link("lost", "no connection");
    else { link("lost", error.message); announce(error.message); }
  }
}

async function run() {
  let due = performance.now();
  for (let n = 0; ; n += 1) {
    if (!document.hidden) await guard(async () => { if (n % 5 === 0) await look(); await poll(); });
    due = Math.max(due + EVERY_MS, performance.now());
    await new Promise((resolve) => setTimeout(resolve, due - performance.now()));
  }
}

// After the page was hidden, what was missed is fetched.
document.addEventListener("visibilitychange", () => { if (!document.hidden && now.name) guard(() => overview.load()); });
addEventListener("hashchange", route);
route();
run();
