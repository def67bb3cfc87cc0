// The policy: written, checked as it is written, applied, and gone back from.

import * as api from "./api.js";
import { Editor } from "./editor.js";
import * as form from "./format.js";
import { make, Table } from "./tables.js";

/** How long nothing must be typed before the text is checked, ms. */
const QUIET_MS = 350;
/** So many entries of a history are shown at first. */
const FEW = 10;
const element = (id) => document.getElementById(id);

const TONES = { applied: "good", unconfirmed: "warn" };

export class Policy {
  /** `now()` is { name }; `changed()` is called after a change was made. */
  constructor(now, changed, announce) {
    Object.assign(this, { now, changed, announce });
    this.editor = new Editor(() => this.typed());
    this.generation = null;
    this.number = 0;
    element("template").addEventListener("change", (event) => this.start(event.target.value));
    element("discard").addEventListener("click", () => { element("template").value = ""; this.start(""); });
    element("apply-form").addEventListener("submit", (event) => { event.preventDefault(); this.apply(); });
    this.table = new Table(element("history"), "History", [
      { title: "number", number: true, className: "tight", cell: (one) => String(one.number) },
      { title: "when", cell: (one) => this.when(one.when) },
      { title: "what", className: "name less", cell: (one) => one.repeats ? `${one.what} to ${one.repeats}` : one.what },
      { title: "policy", cell: (one) => one.policy_name, className: "name" },
      { title: "outcome", cell: (one) => make("span", `tag ${TONES[one.outcome] ?? "bad"}`, one.outcome) },
      { title: "message", className: "wrap less", cell: (one) => one.message ?? make("span", "quiet", form.none) },
      { title: "from", className: "less", cell: (one) => one.policy_source.split("/").pop() },
      { title: "", cell: (one) => this.buttons(one) },
    ], { empty: "nothing was put into force yet", key: (one) => one.number });
    element("history-all").addEventListener("click", () => { this.unfolded = true; this.fold(); });
    element("history").addEventListener("click", (event) => this.pressed(event));
  }

  when(iso) {
    const time = make("time", "", iso.replace("T", " ").slice(0, 19));
    time.dateTime = iso;
    return time;
  }

  buttons(one) {
    const button = (action, text, label) => {
      const made = make("button", "small", text);
      made.type = "button";
      made.dataset.action = action;
      made.dataset.number = one.number;
      made.setAttribute("aria-label", label);
      return made;
    };
    return make("span", "actions", button("look", "Open", `Open the policy of entry ${one.number} in the editor`),
      button("back", "Go back to it", `Go back to the policy of entry ${one.number}`));
  }

  async pressed(event) {
    const button = event.target.closest("button[data-action]");
    if (!button) return;
    const number = Number(button.dataset.number);
    const { name } = this.now();
    try {
      if (button.dataset.action === "look") {
        const entry = await api.entry(name, number);
        this.editor.value = entry.policy;
        this.check();
        this.editor.text.focus();
      } else {
        await this.done(await api.rollback(name, number, this.time()), `Went back to entry ${number}`);
      }
    } catch (problem) {
      this.say("applied", this.words(problem), "bad");
    }
  }

  /** Shows an interface's policy and history from the beginning. */
  async open() {
    const { name } = this.now();
    if (this.shown === name) { this.history(); return; }
    this.shown = name;
    this.unfolded = false;
    const known = await api.profiles();
    const options = known.map((profile) => new Option(`profile ${profile}`, profile));
    element("template").replaceChildren(new Option("what is in force", ""), ...options);
    await this.start("");
    this.history();
  }

  async start(profile) {
    const { name } = this.now();
    const [found, present] = await Promise.all([profile ? api.profile(profile) : null, api.policy(name)]);
    this.generation = present.generation;
    this.present = present.text;
    this.editor.value = found ? found.text : present.text;
    this.say("applied", "");
    await this.check();
  }

  async history() {
    const entries = await api.past(this.now().name);
    this.entries = entries.reverse();
    this.fold();
  }

  /** Shows the latest entries, or all of them once that was asked for. */
  fold() {
    const more = this.entries.length - FEW;
    const button = element("history-all");
    button.hidden = more <= 0 || this.unfolded;
    button.textContent = `Show ${more} earlier`;
    this.table.fill(this.unfolded ? this.entries : this.entries.slice(0, FEW));
  }

  typed() {
    clearTimeout(this.timer);
    this.number += 1;
    element("apply").disabled = true;
    this.say("verdict", "…");
    this.timer = setTimeout(() => this.check(), QUIET_MS);
  }

  async check() {
    const number = ++this.number;
    let found;
    // The server checks for who has the token. Whoever only looks is not asked for it.
    if (!api.hasToken() && this.editor.value === this.present) {
      this.editor.mark([]);
      this.findings({ findings: [] });
      this.difference({ valid: true });
      element("apply").disabled = true;
      this.say("verdict", "Valid: this is what is in force.", "good");
      return;
    }
    try {
      found = await api.check(this.now().name, this.editor.value);
    } catch (problem) {
      if (number === this.number) this.say("verdict", this.words(problem), "bad");
      return;
    }
    // An answer about a text that has changed since is of no use.
    if (number !== this.number) return;
    this.editor.mark(found.findings);
    this.findings(found);
    this.difference(found);
    const errors = found.findings.filter((one) => one.severity === "error").length;
    element("apply").disabled = !found.valid || Boolean(found.refused) || !found.changes;
    if (errors > 0) this.say("verdict", `${errors} error${errors > 1 ? "s" : ""}: ${found.findings[0].title}`, "bad");
    else if (found.refused) this.say("verdict", `Valid, but it cannot be applied here. ${found.refused.error}`, "bad");
    else this.say("verdict", found.changes ? "Valid." : "Valid: this is what is in force.", "good");
  }

  findings({ findings }) {
    element("findings-card").hidden = findings.length === 0;
    element("findings").replaceChildren(...findings.map((one) => {
      const item = make("li", "", make("span", `tag ${one.severity === "error" ? "bad" : one.severity === "warning" ? "warn" : ""}`, one.severity), " ");
      if (one.place) {
        const place = make("button", "", `line ${one.place.line}, column ${one.place.column}`);
        place.type = "button";
        place.addEventListener("click", () => this.editor.go(one.place));
        item.append(place);
      }
      if (one.pointer) item.append(" ", make("code", "quiet", one.pointer));
      item.append(make("div", "", one.title + (one.place?.text ? ` (${one.place.text})` : "")));
      one.cures.forEach((cure) => item.append(make("div", "cure", `→ ${cure}`)));
      return item;
    }));
  }

  difference({ valid, refused, lines = [] }) {
    const signs = { added: "+", removed: "−", changed: "~" };
    const say = (text) => [make("li", "none quiet", text)];
    const shown = lines.map((line) => make("li", line.sign, `${signs[line.sign]} ${line.text}`));
    const text = !valid ? "It has errors, so it changes nothing." : refused ? refused.cure ?? refused.error : "Nothing.";
    element("difference").replaceChildren(...(shown.length > 0 ? shown : say(text)));
  }

  time() {
    const chosen = element("confirm-time").value;
    return chosen === "" ? null : Number(chosen);
  }

  async apply() {
    const button = element("apply");
    if (button.disabled) return;
    button.disabled = true;
    this.say("applied", "Applying …");
    const wish = { text: this.editor.value, confirm_s: this.time(), message: element("message").value, generation: this.generation };
    try {
      await this.done(await api.apply(this.now().name, wish), "Applied");
      element("message").value = "";
    } catch (problem) {
      this.say("applied", this.words(problem), "bad");
      if (problem.findings) { this.editor.mark(problem.findings); this.findings({ findings: problem.findings }); }
      else this.refresh();
    }
  }

  async done(answer, what) {
    this.generation = answer.generation;
    const notes = answer.unconfirmed ? ` Keep it within ${answer.unconfirmed.left_s} s, or it is taken back.` : "";
    this.say("applied", `${what}: generation ${answer.generation}.${notes}`, "good");
    await this.changed();
    await this.refresh();
  }

  /** What is in force has changed: the difference and the history with it. */
  async refresh() {
    const present = await api.policy(this.now().name);
    this.present = present.text;
    this.generation = present.generation;
    await Promise.all([this.check(), this.history()]);
  }

  words(problem) { return problem.cure ? `${problem.message}\n${problem.cure}` : problem.message; }

  say(id, text, state = "") {
    const place = element(id);
    place.textContent = text;
    place.dataset.state = state;
  }
}
