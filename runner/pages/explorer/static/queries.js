// @ts-check
// The queries: hardest, most divisive, gains and losses between two systems, and one query in detail.

const MOST_SIDE_BY_SIDE = 5;
const MOST_IN_MAP = 30;

class Queries {
  /**
   * @param {Data} data
   * @param {State} state
   * @param {Board} board
   * @param {() => Promise<void>} changed
   */
  constructor(data, state, board, changed) {
    this.data = data;
    this.state = state;
    this.board = board;
    this.changed = changed;
    this.tools = create("div", {class: "tools"});
    this.note = create("p", {class: "about"});
    this.message = create("p", {class: "message", role: "alert", hidden: true});
    const holder = create("div");
    this.detail = create("div", {class: "query", "aria-live": "polite"});
    byId("query-table").replaceChildren(this.tools, this.note, this.message, holder, this.detail);
    this.table = new WindowedTable(holder, "Queries");
    /** @type {Scores | null} */
    this.scores = null;
    this.measured = "";
    /** @type {Column[]} */
    this.columns = [];
    this.filter = create("input", {type: "search", value: state.queries, "aria-label": "Filter queries",
      placeholder: "mean < 0.2 and answered > 0", spellcheck: "false", autocomplete: "off",
      input: (/** @type {any} */ event) => { state.queries = event.target.value; this.changed(); }});
  }

  name(/** @type {number} */ system) {
    return `${system + 1}. ${this.board.column("label").values[system]}`;
  }

  /** Return the systems to choose from: pinned ones, the finalists, and those chosen. */
  systems() {
    const {state, data} = this;
    return [...new Set([state.first, state.second, ...state.pins, ...data.finalists])].sort((a, b) => a - b);
  }

  /** Return the systems side by side: the two chosen ones, then pinned ones. */
  beside() {
    const {state} = this;
    return [...new Set([state.first, state.second, ...state.pins])].slice(0, MOST_SIDE_BY_SIDE);
  }

  /** Measure the difficulty of each query over the systems that the leaderboard shows. */
  measure() {
    const {data, state, scores} = this;
    if (!scores) return;
    const systems = state.brush ? this.board.rows.filter(row => state.brush?.has(row)) : this.board.rows;
    const count = data.queries.ids.length;
    const figures = {mean: new Array(count).fill(null), spread: new Array(count).fill(null),
      worst: new Array(count).fill(null), best: new Array(count).fill(null), answered: new Array(count).fill(0)};
    for (let query = 0; query < count; query++) {
      let n = 0, sum = 0, squares = 0, low = Infinity, high = -Infinity;
      for (const system of systems) {
        const value = scores.at(query, system);
        if (value !== value) continue;
        n++; sum += value; squares += value * value;
        if (value < low) low = value;
        if (value > high) high = value;
        if (value > 0) figures.answered[query]++;
      }
      if (!n) continue;
      figures.mean[query] = sum / n;
      figures.spread[query] = Math.sqrt(Math.max(0, squares / n - (sum / n) ** 2));
      figures.worst[query] = low;
      figures.best[query] = high;
    }
    const of = (/** @type {number} */ system) => Array.from({length: count}, (_, query) => {
      const value = scores.at(query, system);
      return value === value ? value : null;
    });
    const a = of(state.first), b = of(state.second);
    const {ids, texts, types} = data.queries;
    const column = (/** @type {string} */ id, /** @type {string} */ title, /** @type {any[]} */ values, format = "score",
      definition = "") => ({id, name: id, title, values, format, kind: "", shown: true, definition});
    this.columns = [
      column("query", "query", ids, "text"),
      column("text", "text", texts, "text"),
      ...(types.some(Boolean) ? [column("type", "type", types, "text")] : []),
      column("words", "words", texts.map(text => text.split(/\s+/).filter(Boolean).length), "integer", "Length in words"),
      column("mean", "mean", figures.mean, "score", `Mean ${data.primary} over the combinations shown: the lowest are hardest`),
      column("spread", "spread", figures.spread, "score", "Standard deviation over the combinations shown: how divisive"),
      column("worst", "worst", figures.worst),
      column("best", "best", figures.best),
      column("answered", "answered", figures.answered, "integer", `Combinations with more than 0, of ${systems.length}`),
      column("first", "A", a, "score", this.name(state.first)),
      column("second", "B", b, "score", this.name(state.second)),
      column("gap", "B \u2212 A", b.map((value, i) => (value === null || a[i] === null ? null : value - a[i])), "signed",
        "Gains of B are positive, losses negative"),
    ];
  }

  async show() {
    const {state, data} = this;
    this.scores = await this.board.scores();
    const options = /** @type {[string, string][]} */ (this.systems().map(system => [String(system), this.name(system)]));
    const focused = [...this.tools.querySelectorAll("input, select")].findIndex(control => control === document.activeElement);
    this.tools.replaceChildren(
      create("label", {class: "control wide"}, create("span", {}, "Filter"), this.filter),
      createSelect("A", options, String(state.first), value => { state.first = Number(value); this.changed(); }),
      createSelect("B", options, String(state.second), value => { state.second = Number(value); this.changed(); }),
      createSelect("Order", [["mean", "hardest"], ["spread", "most divisive"], ["gap", "largest losses of B"],
        ["gain", "largest gains of B"], ["", "by column"]], this.order(), value => {
        if (value) state.querySort = value === "gain" ? ["gap", true] : [value, value === "spread"];
        this.changed();
      }),
    );
    /** @type {NodeListOf<HTMLElement>} */ (this.tools.querySelectorAll("input, select"))[focused]?.focus();
    const key = JSON.stringify([state.first, state.second, state.filter, state.slice, state.brush && [...state.brush]]);
    if (key !== this.measured) this.measure();
    this.measured = key;
    let rows = [...data.queries.ids.keys()];
    try {
      rows = rows.filter(compileFilter(state.queries, this.columns,
        row => `${data.queries.ids[row]} ${data.queries.texts[row]} ${data.queries.types[row]}`));
      this.message.hidden = true;
    } catch (error) {
      this.message.textContent = error instanceof Error ? error.message : String(error);
      this.message.hidden = false;
    }
    const sort = this.columns.find(column => column.id === state.querySort[0]) || this.columns[0];
    this.order_ = sortRows(rows, sort, state.querySort[1]);
    const gap = /** @type {Column} */ (this.columns.find(column => column.id === "gap")).values;
    const better = rows.filter(row => gap[row] > 1e-4).length, worse = rows.filter(row => gap[row] < -1e-4).length;
    const count = rows.filter(row => gap[row] !== null).length;
    this.note.textContent = `${rows.length.toLocaleString("en")} queries. B is better than A on ${better}, equal on `
      + `${count - better - worse}, worse on ${worse}. Pin a row of the leaderboard to choose it here.`;
    this.table.show({columns: this.columns, items: this.order_, sort: state.querySort, main: "text",
      opened: state.query, open: async row => {
        state.query = row;
        await this.changed();
        this.detail.scrollIntoView({block: "nearest"});
        byId("query-title").focus({preventScroll: true});
      },
      order: id => {
        const column = /** @type {Column} */ (this.columns.find(c => c.id === id));
        const down = isNumeric(column) && !["mean", "gap"].includes(id);
        state.querySort = [id, state.querySort[0] === id ? !state.querySort[1] : down];
        this.changed();
      }});
    this.showQuery();
  }

  order() {
    const [id, down] = this.state.querySort;
    return id === "gap" ? (down ? "gain" : "gap") : id === "mean" && !down ? "mean" : id === "spread" && down ? "spread" : "";
  }

  showQuery() {
    const {state, data, scores} = this, query = state.query;
    if (query === null || !scores || query >= data.queries.ids.length) { this.detail.replaceChildren(); return; }
    const {ids, texts, types, expected} = data.queries;
    const bars = this.beside().map(system => {
      const value = scores.at(query, system), known = value === value;
      return create("li", {}, create("span", {class: "name"}, this.name(system)),
        create("meter", {min: 0, max: 1, value: known ? value : 0, "aria-label": this.name(system)}),
        create("span", {class: "n"}, known ? value.toFixed(3) : DASH));
    });
    this.detail.replaceChildren(
      create("h3", {id: "query-title", tabindex: "-1"}, texts[query] || ids[query]),
      create("p", {class: "about"}, create("code", {}, ids[query]), types[query] ? ` \u00b7 ${types[query]}` : "",
        ` \u00b7 ${expected[query].length.toLocaleString("en")} expected: `,
        create("code", {}, expected[query].slice(0, 12).join(", ") || "none")),
      create("ul", {class: "bars"}, ...bars), ...this.showHits(query));
  }

  /** Return the hits of the pinned systems, or else of the best, with texts, as far as the page has them. @param {number} query */
  showHits(query) {
    const {data, state, scores} = this, all = data.systems || [];
    if (!all.length || !scores) return [];
    const chosen = this.beside(), systems = state.pins.size ? all.filter(system => chosen.includes(system.row ?? -1)) : all;
    const missing = state.pins.size ? chosen.filter(row => !all.some(system => system.row === row)) : [];
    const view = new QueryView(data, state, this.detail, (system, row) => scores.at(row, system.row ?? 0));
    const run = missing.find(row => data.runs[row]);
    view.loadTexts(query, () => this.showQuery());
    return [
      ...(systems.length ? view.hits(query, systems) : []),
      ...(missing.length ? [create("p", {class: "about"}, `This page has the hits of the ${all.length} best combinations, not `
        + `those of ${missing.map(row => this.name(row)).join("; ")}.`, ...(run !== undefined && data.runs[0] ? [
        " To see them: ", create("code", {}, commandOf(data, 0, run))] : []))] : []),
    ];
  }

  /** Return the rows of the plots of queries. */
  tables() {
    const {data, scores, state} = this;
    if (!scores) return {pairs: [], cells: []};
    const rows = this.order_ || [];
    const pairs = rows.map(query => ({query: data.queries.ids[query], text: data.queries.texts[query],
      value: scores.at(query, state.second) - scores.at(query, state.first)})).filter(pair => pair.value === pair.value)
      .sort((a, b) => b.value - a.value).map((pair, place) => ({...pair, place}));
    const systems = [...new Set([...state.pins, ...this.board.ordered()])].slice(0, MOST_IN_MAP);
    const cells = systems.flatMap(system => rows.slice(0, 300).map(query => ({query: data.queries.ids[query],
      text: data.queries.texts[query], name: this.name(system), value: scores.at(query, system)})))
      .filter(cell => cell.value === cell.value);
    return {pairs, cells};
  }
}
