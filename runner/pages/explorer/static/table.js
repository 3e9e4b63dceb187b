// @ts-check
// A table that holds only the rows in view, so that thousands of rows sort and scroll at once.

const ROW_HEIGHT = 30;
const MARGIN = 6;

/**
 * What a table shows: columns, and items in order, each the number of a row or the head of a group.
 * @typedef {{text: string, cells: Record<string, string>}} Group
 * @typedef {{columns: Column[], items: (number | Group)[], sort: [string, boolean], main: string,
 *   bold?: (row: number) => boolean, pins?: Set<number>, open: (row: number) => void,
 *   pin?: (row: number) => void, order: (id: string) => void, opened?: number | null}} TableView
 */

class WindowedTable {
  /** @param {HTMLElement} place @param {string} label */
  constructor(place, label) {
    this.body = create("tbody", {keydown: (/** @type {KeyboardEvent} */ event) => this.move(event)});
    this.head = create("tr");
    this.widths = create("colgroup");
    this.table = create("table", {"aria-label": label}, this.widths, create("thead", {}, this.head), this.body);
    this.scroll = create("div", {class: "scroll windowed", tabindex: "0", role: "region", "aria-label": label}, this.table);
    this.scroll.addEventListener("scroll", () => requestAnimationFrame(() => {
      this.top = this.scroll.scrollTop;
      this.redraw();
    }), {passive: true});
    place.replaceChildren(this.scroll);
    /** @type {TableView | null} */
    this.view = null;
    this.active = 0;
    this.all = false;
    this.heads = "";
    // Kept, since reading them from the page in the middle of a change would lay it out twice.
    this.top = 0;
    this.height = 600;
    new ResizeObserver(() => {
      this.height = this.scroll.clientHeight || 600;
      this.redraw();
    }).observe(this.scroll);
    this.pressed = this.late = false;
    this.body.addEventListener("pointerdown", () => { this.pressed = true; });
    for (const end of ["pointerup", "pointercancel"])
      window.addEventListener(end, () => setTimeout(() => { // after the click
        this.pressed = false;
        if (this.late) this.redraw();
      }));
    this.body.addEventListener("click", (/** @type {Event} */ event) => this.openRow(/** @type {Element} */ (event.target)));
    window.addEventListener("beforeprint", () => { this.all = true; this.draw(); });
    window.addEventListener("afterprint", () => { this.all = false; this.draw(); });
  }

  /** @param {TableView} view */
  show(view) {
    this.view = view;
    this.active = Math.min(this.active, Math.max(0, view.items.length - 1));
    this.table.setAttribute("aria-rowcount", String(view.items.length + 1));
    const heads = `${view.columns.map(column => column.id + column.title + column.definition).join()} ${view.sort.join()}`;
    if (heads !== this.heads) this.showHead(view);
    this.heads = heads;
    this.draw();
  }

  /** @param {TableView} view */
  showHead(view) {
    const columns = view.columns.map(column =>
      create("col", {style: column.id === view.main ? null : `width:${widthOf(column)}ch`}));
    const total = view.columns.reduce((sum, column) => sum + widthOf(column), view.pin ? 5 : 0);
    this.table.style.minWidth = `max(100%, ${total}ch)`;
    this.widths.replaceChildren(...(view.pin ? [create("col", {style: "width:2.6rem"})] : []), ...columns);
    const focused = this.head.contains(document.activeElement)
      ? document.activeElement?.getAttribute("data-column") : null;
    this.head.replaceChildren(
      ...(view.pin ? [create("th", {scope: "col"}, create("span", {class: "hidden"}, "pinned"))] : []),
      ...view.columns.map(column => {
        const sorted = view.sort[0] === column.id ? (view.sort[1] ? "descending" : "ascending") : null;
        const button = create("button", {type: "button", "data-column": column.id, title: column.definition || null,
          click: () => this.view?.order(column.id)}, column.title);
        return create("th", {scope: "col", class: isNumeric(column) ? "n" : null, "aria-sort": sorted}, button);
      }),
    );
    if (focused) this.head.querySelector(`[data-column="${CSS.escape(focused)}"]`)?.focus();
  }

  /** Draw the rows that a scroll or a change of size brings into view. A row replaced under a press gets no click. */
  redraw() {
    this.late = this.pressed;
    if (!this.pressed) this.draw();
  }

  draw() {
    const view = this.view;
    if (!view) return;
    const count = view.items.length;
    const top = Math.min(this.top, Math.max(0, count * ROW_HEIGHT - this.height + 2 * ROW_HEIGHT));
    const first = this.all ? 0 : Math.max(0, Math.floor(top / ROW_HEIGHT) - MARGIN);
    const rowsInView = Math.ceil(this.height / ROW_HEIGHT) + 2 * MARGIN;
    const last = this.all ? Math.min(count, 500) : Math.min(count, first + rowsInView);
    const span = view.columns.length + (view.pin ? 1 : 0);
    const focus = this.body.contains(document.activeElement) ? document.activeElement?.className : null;
    const rows = [];
    if (this.active < first || this.active >= last) this.active = first;
    if (typeof view.items[this.active] === "object" && this.active + 1 < count) this.active++; // the head of a group
    for (let place = first; place < last; place++) rows.push(this.row(view, place, span));
    const before = first * ROW_HEIGHT, after = this.all ? 0 : (count - last) * ROW_HEIGHT;
    if (before) rows.unshift(space(before, span));
    if (after > 0) rows.push(space(after, span));
    if (!count) rows.push(create("tr", {}, create("td", {colspan: span, class: "empty"}, "No rows match.")));
    this.body.replaceChildren(...rows);
    if (focus) this.body.querySelector(`[tabindex="0"].${focus}`)?.focus({preventScroll: true});
  }

  /** @param {TableView} view @param {number} place @param {number} span */
  row(view, place, span) {
    const item = view.items[place];
    if (typeof item !== "number") {
      const cells = view.columns.map(column => create("td", {class: isNumeric(column) ? "n" : null},
        column.id === view.main ? item.text : item.cells[column.id] || ""));
      return create("tr", {class: "group", "aria-rowindex": place + 2}, ...(view.pin ? [create("td")] : []), ...cells);
    }
    const stop = place === this.active ? "0" : "-1";
    const pinned = Boolean(view.pins?.has(item));
    const name = showValue(/** @type {Column} */ (view.columns.find(c => c.id === view.main) || view.columns[0]), item);
    const pin = view.pin && create("td", {}, create("button", {
      type: "button", class: "pin", tabindex: stop, "aria-pressed": String(pinned), "aria-label": `Pin ${name}`,
      title: pinned ? "Unpin" : "Pin: keep at the top, and compare",
      click: () => { this.active = place; view.pin?.(item); },
    }, pinned ? "\u2605" : "\u2606"));
    const cells = view.columns.map(column => {
      const text = showValue(column, item);
      if (column.id !== view.main) {
        const cell = document.createElement("td"); // most of the page: without the detour over `create`
        cell.textContent = text;
        if (isNumeric(column)) cell.className = "n";
        if (text.length > 24) cell.title = text;
        return cell;
      }
      return create("td", {}, create("button", {type: "button", class: "open", tabindex: stop, title: text,
        click: () => { this.active = place; view.open(item); }}, text));
    });
    const classes = [view.bold?.(item) ? "alike" : "", pinned ? "pinned" : "", view.opened === item ? "opened" : ""];
    return create("tr", {class: classes.join(" ").trim() || null, "aria-rowindex": place + 2},
      ...(pin ? [pin] : []), ...cells);
  }

  /** Open the item of a row wherever it is clicked, except on its buttons. @param {Element} target */
  openRow(target) {
    const row = target.closest("tr[aria-rowindex]");
    if (!row || target.closest("button, a") || String(getSelection())) return;
    const place = Number(row.getAttribute("aria-rowindex")) - 2;
    const item = this.view?.items[place];
    if (typeof item !== "number") return;
    this.active = place;
    this.view?.open(item);
  }

  /** Give the focus to the row that had it last. */
  focusRow() {
    this.body.querySelector('[tabindex="0"].open')?.focus({preventScroll: true});
  }

  /** @param {KeyboardEvent} event */
  move(event) {
    const view = this.view;
    if (!view) return;
    const page = Math.max(1, Math.floor(this.scroll.clientHeight / ROW_HEIGHT) - 2);
    /** @type {Record<string, number>} */
    const steps = {ArrowDown: 1, ArrowUp: -1, PageDown: page, PageUp: -page, Home: -Infinity, End: Infinity};
    const step = steps[event.key];
    const item = view.items[this.active];
    if (event.key === "p" && typeof item === "number" && !event.ctrlKey && !event.metaKey) view.pin?.(item);
    if (step === undefined) return;
    event.preventDefault();
    let place = Math.min(view.items.length - 1, Math.max(0, this.active + step));
    const way = step < 0 ? -1 : 1;
    while (typeof view.items[place] === "object" && view.items[place + way] !== undefined) place += way;
    this.active = place;
    const top = place * ROW_HEIGHT, head = this.head.offsetHeight;
    if (top < this.scroll.scrollTop) this.scroll.scrollTop = top;
    else if (top + ROW_HEIGHT + head > this.scroll.scrollTop + this.scroll.clientHeight)
      this.scroll.scrollTop = top + 2 * ROW_HEIGHT + head - this.scroll.clientHeight;
    this.top = this.scroll.scrollTop;
    this.draw();
  }
}

/** @param {number} height @param {number} span */
function space(height, span) {
  return create("tr", {class: "space", "aria-hidden": "true"}, create("td", {colspan: span, style: `height:${height}px`}));
}

/**
 * Return the width of a column in characters, from its longest text.
 * @param {Column} column
 */
function widthOf(column) {
  if (column.width === undefined) {
    let longest = 0;
    const step = Math.max(1, Math.floor(column.values.length / 500));
    for (let row = 0; row < column.values.length; row += step)
      longest = Math.max(longest, showValue(column, row).length);
    column.width = Math.min(46, Math.max(longest + 3, Math.min(column.title.length, 16) + 5));
  }
  return column.width;
}
