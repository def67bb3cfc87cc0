// Tables that are filled again every second without losing focus or place.

/** An element with a class and children, which may be text. */
export function make(tag, className, ...children) {
  const element = document.createElement(tag);
  if (className) element.className = className;
  element.append(...children);
  return element;
}

/**
 * A table over rows. A column is { title, cell(row), number?, sort?(row), className? }; a cell is text or a node.
 * Rows whose cells are the same keep their elements.
 */
export class Table {
  constructor(element, caption, columns, { sort = null, empty = "nothing yet" } = {}) {
    this.element = element;
    this.columns = columns;
    this.empty = empty;
    this.order = sort;
    this.rows = [];
    this.body = make("tbody");
    this.heads = columns.map((column, n) => this.head(column, n));
    element.replaceChildren(make("caption", "hidden", caption), make("thead", "", make("tr", "", ...this.heads)), this.body);
  }

  head(column, n) {
    const cell = make("th", [column.number ? "n" : "", ...(column.className ?? "").split(" ").filter((name) => name === "tight" || name === "less")].join(" ").trim());
    cell.scope = "col";
    if (!column.sort) { cell.textContent = column.title; return cell; }
    const button = make("button", "", column.title);
    button.type = "button";
    button.addEventListener("click", () => {
      const down = this.order?.column === n ? !this.order.down : Boolean(column.number);
      this.order = { column: n, down };
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
    if (this.order) {
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
    shown.forEach((row, n) => this.line(old[n], row));
    old.slice(shown.length).forEach((line) => line.remove());
  }

  line(line, row) {
    if (!line || line.cells.length !== this.columns.length) {
      const fresh = make("tr");
      this.columns.forEach((column) => fresh.append(make("td", [column.number ? "n" : "", column.className ?? ""].join(" ").trim())));
      if (line) line.replaceWith(fresh); else this.body.append(fresh);
      line = fresh;
    }
    this.columns.forEach((column, n) => {
      const cell = column.cell(row);
      const place = line.cells[n];
      if (typeof cell === "string") {
        if (place.childElementCount > 0 || place.textContent !== cell) place.textContent = cell;
      } else if (place.innerHTML !== cell.outerHTML || cell.dataset.live) {
        if (!place.contains(document.activeElement)) place.replaceChildren(cell);
      }
    });
  }
}
