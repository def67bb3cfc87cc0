// Colours for JSON with comments, and marks under what findings point at.

const TOKEN = /(\/\/[^\n]*|\/\*[\s\S]*?(?:\*\/|$))|("(?:[^"\\\n]|\\.)*"?)(\s*:)?|(-?\d[\d.eE+-]*)|\b(true|false|null)\b/g;

function spans(text) {
  const found = [];
  for (const match of text.matchAll(TOKEN)) {
    const [whole, remark, string, colon, number] = match;
    const length = string === undefined ? whole.length : string.length;
    const kind = remark !== undefined ? "r" : string !== undefined ? (colon === undefined ? "s" : "k") : number !== undefined ? "d" : "w";
    found.push([match.index, match.index + length, kind]);
  }
  return found;
}

/** Offset in UTF-16 units of a line and column, both from 1, the column in characters. */
export function offset(text, line, column) {
  let start = 0;
  for (let n = 1; n < line; n += 1) {
    const end = text.indexOf("\n", start);
    if (end < 0) return text.length;
    start = end + 1;
  }
  for (let n = 1; n < column && start < text.length && text[start] !== "\n"; n += 1) {
    start += text.codePointAt(start) > 0xffff ? 2 : 1;
  }
  return start;
}

/** Fills an element with the text, coloured; `marks` are [from, to, severity]. */
export function paint(element, text, marks) {
  const cuts = new Set([0, text.length]);
  const tokens = spans(text);
  for (const [from, to] of [...tokens, ...marks]) { cuts.add(from); cuts.add(to); }
  const places = [...cuts].sort((a, b) => a - b);
  const nodes = [];
  let token = 0;
  for (let n = 0; n + 1 < places.length; n += 1) {
    const [from, to] = [places[n], places[n + 1]];
    while (token < tokens.length && tokens[token][1] <= from) token += 1;
    const kind = tokens[token] && tokens[token][0] <= from ? tokens[token][2] : "";
    const mark = marks.find(([start, end]) => start <= from && to <= end);
    const part = text.slice(from, to);
    if (kind === "" && !mark) { nodes.push(part); continue; }
    const span = document.createElement("span");
    span.className = mark ? `${kind} under-${mark[2]}` : kind;
    span.textContent = part;
    nodes.push(span);
  }
  element.replaceChildren(...nodes, "\n");
}
