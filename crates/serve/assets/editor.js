// A text area with colours, line numbers and marks at what findings point at.

import { offset, paint } from "./highlight.js";

export class Editor {
  constructor(changed) {
    this.text = document.getElementById("text");
    this.shade = document.getElementById("shade");
    this.gutter = document.getElementById("gutter");
    this.findings = [];
    this.changed = changed;
    this.text.addEventListener("input", () => { this.findings = []; this.draw(); changed(); });
    this.text.addEventListener("scroll", () => this.follow());
    this.text.addEventListener("keydown", (event) => this.key(event));
    // Escape gives Tab back to the page, so that a keyboard can leave the editor.
    this.text.addEventListener("blur", () => { this.leaving = false; });
  }

  get value() { return this.text.value; }

  set value(text) {
    this.text.value = text;
    this.findings = [];
    this.text.scrollTop = 0;
    this.text.scrollLeft = 0;
    this.draw();
  }

  key(event) {
    if (event.key === "Escape") { this.leaving = true; return; }
    if (event.key === "Tab" && !this.leaving && !event.shiftKey && !event.ctrlKey && !event.altKey) {
      event.preventDefault();
      this.insert("  ");
      return;
    }
    if (event.key === "Enter" && !event.ctrlKey && !event.metaKey) {
      const before = this.value.slice(0, this.text.selectionStart);
      const line = before.slice(before.lastIndexOf("\n") + 1);
      const indent = line.match(/^\s*/)[0] + (/[[{]\s*$/.test(line) ? "  " : "");
      event.preventDefault();
      this.insert(`\n${indent}`);
    }
    if (event.key !== "Tab") this.leaving = false;
  }

  insert(text) {
    // The old command is what keeps undo working.
    if (!document.execCommand("insertText", false, text)) this.text.setRangeText(text, this.text.selectionStart, this.text.selectionEnd, "end");
    this.text.dispatchEvent(new Event("input"));
  }

  /** Marks places; `findings` as the server gives them. */
  mark(findings) {
    this.findings = findings;
    this.draw();
  }

  /** Selects a place. */
  go(place) {
    this.text.focus();
    this.text.setSelectionRange(offset(this.value, place.line, place.column), offset(this.value, place.end_line, place.end_column));
    const height = parseFloat(getComputedStyle(this.text).lineHeight);
    this.text.scrollTop = Math.max(0, (place.line - 4) * height);
  }

  draw() {
    const text = this.value;
    this.text.setAttribute("aria-invalid", String(this.findings.some((one) => one.severity === "error")));
    const places = this.findings.filter((one) => one.place && one.severity !== "note");
    const marks = places.map(({ place, severity }) => {
      const from = offset(text, place.line, place.column);
      return [from, Math.max(from + 1, offset(text, place.end_line, place.end_column)), severity];
    });
    paint(this.shade, text, marks);
    const worst = new Map();
    for (const { place, severity } of places) if (worst.get(place.line) !== "error") worst.set(place.line, severity);
    const lines = text.split("\n").length;
    this.gutter.replaceChildren(...Array.from({ length: lines }, (_, n) => {
      const number = document.createElement("div");
      number.textContent = n + 1;
      if (worst.has(n + 1)) number.className = worst.get(n + 1);
      return number;
    }));
    this.follow();
  }

  follow() {
    this.shade.scrollTop = this.text.scrollTop;
    this.shade.scrollLeft = this.text.scrollLeft;
    this.gutter.scrollTop = this.text.scrollTop;
  }
}
