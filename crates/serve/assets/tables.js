// Tables that are filled again every second without losing focus or place.

/** An element with a class and children, which may be text. */
export function make(tag, className, ...children) {
  const element = document.createElement(tag);
  if (className) element.className = className;
  element.append(...children);
  return element;
}

/** Switches the labels between those of subscribers and those of a class tree. */
export function setLabels(isClassTree) {
  document.body.classList.toggle("of-classes", isClassTree);
  for (const one of document.querySelectorAll("[data-of-classes]")) {
    one.dataset.ofSubscribers ??= one.textContent;
    const text = isClassTree ? one.dataset.ofClasses : one.dataset.ofSubscribers;
    if (one.textContent !== text) one.textContent = text;
  }
}

/** A bar that is full at 1, in the colour of a class or the page's own. */
export function bar(part, place) {
  const fill = make("i");
  fill.style.width = `${Math.min(100, Math.max(0, part * 100)).toFixed(1)}%`;
  if (place !== undefined) fill.style.background = `var(--c${place % 8})`;
  const outer = make("span", "bar", fill);
  outer.setAttribute("aria-hidden", "true");
  return outer;
}

/** A text with a bar below it, if a part is known. */
export const withBar = (text, part, place) => part === null || part === undefined ? text : make("span", "", text, bar(part, place));

/** A figure with its title, what explains it, and a bar if a part is known; `kind` is "word" where the figure is none. */
export function tile([title, value, under, state = "", part = null, kind = ""]) {
  const shown = make("div", "tile", make("dt", "", title), make("dd", kind, value), make("dd", "under", under));
  if (part !== null) shown.append(bar(part));
  shown.dataset.state = state;
  return shown;
}

/**
 * A table over rows. A column is { title, cell(row), number?, sort?, className?, ofClasses? }; a cell is text or a node, and `ofClasses` the
 * title over a class tree.
 * Rows whose cells are the same keep their elements. With `key(row)` a row keeps its elements, and the focus in them, wherever it
 * moves; else the row at a place does. `sort(row)` is what a column is sorted by. With `reorder(sort, down)`, which asks the server
 * for another order, the rows come sorted, and `sort` is the name of the order.
 */
export class Table {
  constructor(element, caption, columns, { sort = null, empty = "nothing yet", key = null, reorder = null } = {}) {
    this.element = element;
    this.columns = columns;
    this.empty = empty;
    this.order = sort;
    this.key = key;
    this.reorder = reorder;
    this.rows = [];
    this.body = make("tbody");
    this.heads = columns.map((column, n) => this.head(column, n));
    element.replaceChildren(make("caption", "hidden", caption), make("thead", "", make("tr", "", ...this.heads)), this.body);
  }

  head(column, n) {
    const cell = make("th", [column.number ? "n" : "", ...(column.className ?? "").split(" ").filter((name) => ["tight", "less", "of-plans"].includes(name))].join(" ").trim());
    cell.scope = "col";
    const button = column.sort ? make("button", "", column.title) : cell;
    if (column.ofClasses) button.dataset.ofClasses = column.ofClasses;
    if (!column.sort) { cell.textContent = column.title; return cell; }
    button.type = "button";
    button.addEventListener("click", () => {
      const down = this.order?.column === n ? !this.order.down : Boolean(column.number);
      this.order = { column: n, down };
      if (this.reorder) this.reorder(column.sort, down);
      this.fill(this.rows);
    });
    cell.append(button);
    return cell;
  }

  fill(rows) {
    this.rows = rows;
    let shown = rows;
    this.heads.forEach((head, n) => {
      if (this.order?.column === n) head.setAttribute("aria-sort", this.order.down ? "descending" : "ascending");
      else head.removeAttribute("aria-sort");
    });
    if (this.order && !this.reorder) {
      const key = this.columns[this.order.column].sort;
      const sign = this.order.down ? -1 : 1;
      shown = [...rows].sort((a, b) => {
        const [x, y] = [key(a), key(b)];
        return sign * (typeof x === "string" ? x.localeCompare(y) : x - y);
      });
    }
    if (shown.length === 0) {
      const cell = make("td", "quiet", this.empty);
      cell.colSpan = this.columns.length;
      this.body.replaceChildren(make("tr", "", cell));
      return;
    }
    const old = [...this.body.rows];
    const known = this.key ? new Map(old.map((line) => [line.dataset.key, line])) : null;
    const held = document.activeElement;
    let next = this.body.firstElementChild;
    shown.forEach((row, n) => {
      const key = this.key ? String(this.key(row)) : undefined;
      let line = known ? known.get(key) : old[n];
      if (!line || line.cells.length !== this.columns.length) line = this.fresh(key);
      if (line === next) next = next.nextElementSibling; else this.body.insertBefore(line, next);
      this.line(line, row);
    });
    while (next) {
      const after = next.nextElementSibling;
      next.remove();
      next = after;
    }
    // A row that moves loses the focus.
    if (held !== document.activeElement && this.body.contains(held)) held.focus({ preventScroll: true });
  }

  fresh(key) {
    const line = make("tr");
    if (key !== undefined) line.dataset.key = key;
    this.columns.forEach((column) => line.append(make("td", [column.number ? "n" : "", column.className ?? ""].join(" ").trim())));
    return line;
  }

  line(line, row) {
    this.columns.forEach((column, n) => {
      const cell = column.cell(row);
      const place = line.cells[n];
      if (typeof cell === "string") {
        if (place.childElementCount > 0 || place.textContent !== cell) place.textContent = cell;
      } else if (place.innerHTML !== cell.outerHTML || cell.dataset.live) {
        const action = place.contains(document.activeElement) ? document.activeElement.dataset.action ?? "" : null;
        if (action === "") return;
        place.replaceChildren(cell);
        if (action) place.querySelector(`[data-action="${action}"]`)?.focus({ preventScroll: true });
      }
    });
  }
}
