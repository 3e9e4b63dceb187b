// @ts-check
// The main table: filter, sort, group, pin, choose columns, export.

/**
 * What a reader chose. All but `brush` and `dialog` is in the address of the page.
 * @typedef {{tab: string, sort: [string, boolean], filter: string, columns: string[] | null, group: string, slice: string,
 *   pins: Set<number>, first: number, second: number, queries: string, querySort: [string, boolean], query: number | null,
 *   brush: Set<number> | null}} State
 */

/**
 * What the rows of the main table are: `main` is the column that opens a row, `noun` names the rows.
 * @typedef {{main: string, noun: string, file: string, example: string, pins: boolean,
 *   open: ((row: number) => void) | null}} BoardOptions
 */

class Board {
  /**
   * @param {Data} data
   * @param {State} state
   * @param {() => Promise<Scores>} scores
   * @param {() => void} changed
   * @param {BoardOptions} options
   */
  constructor(data, state, scores, changed, options) {
    this.options = options;
    this.data = data;
    this.state = state;
    this.scores = scores;
    this.changed = changed;
    /** @type {Column[]} */
    this.sliced = [];
    /** @type {number[]} */
    this.rows = [];
    const place = byId("board");
    this.tools = create("div", {class: "tools", role: "search"});
    this.message = create("p", {class: "message", role: "alert", hidden: true});
    const holder = create("div");
    place.replaceChildren(this.tools, this.message, holder);
    this.table = new WindowedTable(holder, options.file);
    this.dialog = create("dialog", {class: "details", "aria-labelledby": "details-title", close: () => this.table.focusRow()});
    document.body.append(this.dialog);
    this.buildTools();
  }

  column(/** @type {string} */ id) {
    return /** @type {Column} */ (this.columns().find(column => column.id === id));
  }

  columns() {
    return [...this.data.columns, ...this.sliced];
  }

  buildTools() {
    const {data, state, options} = this;
    const setting = data.columns.find(column => column.kind === "setting" && isNumeric(column))
      || data.columns.find(column => column.kind === "setting");
    const given = setting ? setting.values.findIndex(value => value !== null) : -1;
    const example = setting && given >= 0 ? `${shortName(setting)} = ${showValue(setting, given)}` : "";
    this.filter = create("input", {type: "search", id: "filter", placeholder: options.example || example, "aria-label": `Filter ${options.noun}`,
      value: state.filter, spellcheck: "false", autocomplete: "off", input: (/** @type {any} */ event) => {
        state.filter = event.target.value;
        this.changed();
      }});
    const slices = this.listSlices();
    const groups = data.columns.filter(column => column.kind === "setting");
    const columns = create("details", {class: "menu"}, create("summary", {}, "Columns"), create("div", {class: "choices"}));
    for (const column of data.columns)
      columns.lastChild.append(create("label", {}, create("input", {type: "checkbox", checked: this.isShown(column),
        change: (/** @type {any} */ event) => this.choose(column, event.target.checked)}), column.title));
    const saving = create("details", {class: "menu"}, create("summary", {}, "Export"), create("div", {class: "choices"},
      ...[["csv", "CSV"], ["md", "Markdown"], ["tex", "LaTeX"]].map(([kind, title]) =>
        create("button", {type: "button", click: () => saveFile(`${options.file}.${kind}`,
          exportRows(/** @type {any} */ (kind), this.shownColumns(), this.ordered())) }, title))));
    this.count = create("output", {"aria-live": "polite"});
    this.tools.append(
      create("label", {class: "control wide"}, create("span", {}, "Filter"), this.filter),
      ...(slices.length ? [createSelect("Queries", [["", "all"], ...slices], state.slice, value => { state.slice = value; this.slice(); })] : []),
      ...(groups.length ? [createSelect("Group by", [["", "nothing"],
        .../** @type {[string, string][]} */ (groups.map(column => [column.id, column.title]))],
      state.group, value => { state.group = value; this.changed(); })] : []),
      columns, saving, this.count,
    );
  }

  /** @param {Column} column */
  isShown(column) {
    return this.state.columns ? this.state.columns.includes(column.id) : column.shown;
  }

  /** @param {Column} column @param {boolean} shown */
  choose(column, shown) {
    const ids = new Set(this.data.columns.filter(c => this.isShown(c)).map(c => c.id));
    if (shown) ids.add(column.id); else ids.delete(column.id);
    this.state.columns = [...ids];
    this.changed();
  }

  shownColumns() {
    const columns = this.data.columns.filter(column => this.isShown(column) || column.id === this.options.main);
    columns.splice(columns.findIndex(column => column.id === "mean") + 1, 0, ...this.sliced);
    return columns;
  }

  /** Return the groups of queries that a sweep can be ranked on: "type=factual" and its name. @returns {[string, string][]} */
  listSlices() {
    return Object.entries(this.data.slices || {}).flatMap(([name, values]) =>
      [...new Set(values)].filter(Boolean).sort(collator.compare).map(value =>
        /** @type {[string, string]} */ ([`${name}=${value}`, `${name}: ${value}`])));
  }

  /** Compute the mean of each combination over the chosen queries, with its interval, and order by it. */
  async slice() {
    const {state, data} = this;
    if (state.slice) {
      const scores = await this.scores();
      const [name] = state.slice.split("=", 1), value = state.slice.slice(name.length + 1);
      const queries = [...data.queries.ids.keys()].filter(i => data.slices?.[name]?.[i] === value);
      const {means, halves} = scores.summarise(queries, data.clusters);
      const about = `over the ${queries.length} queries with this ${name}`;
      /** @type {Column[]} */
      this.sliced = [
        {id: "slice", name: "slice", title: `${data.primary}, ${value}`, values: means, format: "score4", kind: "measure",
          shown: true, definition: `Mean ${about}`},
        {id: "slice_interval", name: "slice_interval", title: `95 % interval, ${value}`, format: "text", kind: "", shown: true,
          values: means.map((mean, i) => (mean === null || halves[i] === null ? ""
            : `[${(mean - halves[i]).toFixed(3)}, ${(mean + halves[i]).toFixed(3)}]`)),
          definition: `Interval of the mean ${about} (Student's t), from five queries on`},
      ];
      state.sort = ["slice", true];
    } else {
      this.sliced = [];
      if (state.sort[0] === "slice") state.sort = ["rank", false];
    }
    this.changed();
  }

  /** Filter the rows; an unreadable filter leaves the rows as they were and says why. */
  select() {
    const {data, state} = this, count = data.columns[0].values.length;
    const label = /** @type {Column} */ (data.columns.find(column => column.id === this.options.main));
    try {
      const filter = compileFilter(state.filter, this.columns(), row => String(label.values[row]));
      this.rows = [];
      for (let row = 0; row < count; row++) if (filter(row)) this.rows.push(row);
      this.message.hidden = true;
      this.filter.removeAttribute("aria-invalid");
    } catch (error) {
      this.message.textContent = error instanceof Error ? error.message : String(error);
      this.message.hidden = false;
      this.filter.setAttribute("aria-invalid", "true");
    }
  }

  /** Return the rows in their order, pinned rows first. */
  ordered() {
    const {state} = this;
    const rows = state.brush ? this.rows.filter(row => state.brush?.has(row)) : this.rows;
    const sorted = sortRows(rows, this.column(state.sort[0]) || this.data.columns[0], state.sort[1]);
    if (!state.pins.size) return sorted;
    return [...[...state.pins].sort((a, b) => a - b), ...sorted.filter(row => !state.pins.has(row))];
  }

  /** @returns {(number | Group)[]} */
  items() {
    const rows = this.ordered(), column = this.state.group && this.column(this.state.group);
    if (!column) return rows;
    /** @type {Map<any, number[]>} */
    const groups = new Map();
    for (const row of rows) {
      const value = column.values[row];
      groups.set(value, [...(groups.get(value) || []), row]);
    }
    const numeric = this.shownColumns().filter(c => isNumeric(c) && c.id !== "rank");
    return [...groups].sort(([a], [b]) => collator.compare(String(a ?? ""), String(b ?? ""))).flatMap(([value, group]) => {
      const cells = Object.fromEntries(numeric.map(c => {
        const values = group.map(row => c.values[row]).filter(x => x !== null);
        return [c.id, values.length ? FORMATS[c.format === "integer" ? "number" : c.format](
          values.reduce((sum, x) => sum + x, 0) / values.length) : ""];
      }));
      const shown = value === null ? "(none)" : String(value);
      const text = `${column.title} = ${shown}: mean of ${group.length.toLocaleString("en")}${this.describeMean(group)}`;
      return [{text, cells}, ...group];
    });
  }

  /** Return the mean of a group with its interval, "" for rows that are no queries or tasks. @param {number[]} rows */
  describeMean(rows) {
    const {data} = this, column = data.columns.find(c => c.id === data.order), clusters = data.clusters;
    if (!column) return "";
    const {mean, half} = meanOf(rows.map(row => column.values[row] ?? NaN), clusters ? rows.map(row => clusters[row]) : null);
    if (mean === null) return "";
    const interval = half === null ? "" : ` [${(mean - half).toFixed(3)}, ${(mean + half).toFixed(3)}]`;
    return `, ${column.title} ${mean.toFixed(3)}${interval}`;
  }

  show() {
    const {state, data, options} = this;
    this.select();
    const differs = this.column("differs");
    const items = this.items();
    this.table.show({columns: this.shownColumns(), items, sort: state.sort, main: options.main, pins: state.pins,
      bold: row => Boolean(differs) && !differs.values[row], open: options.open || (row => this.open(row)),
      opened: options.open ? state.query : null,
      pin: !options.pins ? undefined : row => {
        if (!state.pins.delete(row)) state.pins.add(row);
        this.changed();
      },
      order: id => {
        const column = this.column(id), first = isNumeric(column) && !["rank", "p", "first_gold"].includes(id) && column.kind !== "cost";
        state.sort = [id, state.sort[0] === id ? !state.sort[1] : first];
        this.changed();
      }});
    const total = data.columns[0].values.length, shown = items.filter(item => typeof item === "number").length;
    const brush = state.brush ? `, ${state.brush.size.toLocaleString("en")} brushed` : "";
    this.count.replaceChildren(shown === total ? `${total.toLocaleString("en")} ${options.noun}`
      : `${shown.toLocaleString("en")} of ${total.toLocaleString("en")}${brush}`);
    if (state.brush)
      this.count.append(" ", create("button", {type: "button", click: () => { state.brush = null; this.changed(); this.filter.focus(); }},
        "Clear brush"));
  }

  /** Show everything known about a row. @param {number} row */
  open(row) {
    const {data, state, dialog} = this;
    const list = create("dl");
    for (const column of data.columns) {
      if (column.id === this.options.main || column.values[row] === null || column.values[row] === "") continue;
      list.append(create("dt", {title: column.definition || null}, column.title), create("dd", {}, showValue(column, row)));
    }
    const compare = (/** @type {number} */ other) => {
      state.first = row;
      state.second = other;
      state.tab = "queries";
      state.querySort = ["gap", false];
      dialog.close();
      this.changed();
      byId(`tab-${state.tab}`).focus();
    };
    const title = showValue(/** @type {Column} */ (data.columns.find(column => column.id === this.options.main)), row);
    const others = row === 0 || !this.options.pins ? [] : [create("button", {type: "button", click: () => compare(0)},
      "Compare its queries with the best")];
    const command = data.commands?.[row], [best, own] = [data.runs?.[0], data.runs?.[row]];
    if (data.live && own) {
      others.push(create("a", {href: `../${own}/`}, "Queries and hits of this run"));
      if (row) others.push(create("a", {href: `../${best},${own}/`}, "Hits beside those of the best"));
    }
    dialog.replaceChildren(create("h2", {id: "details-title"}, title), list,
      ...(command ? [create("h3", {}, "Settings as overrides"), create("pre", {tabindex: "0"}, command)] : []),
      ...describeRun(data, row),
      ...(own && row ? [create("h3", {}, "Compare with the best"), createCopied(commandOf(data, 0, row), "the comparison")] : []),
      create("p", {class: "buttons"}, ...others, create("button", {type: "button", autofocus: true,
        click: () => dialog.close()}, "Close")));
    dialog.showModal();
  }
}
