// @ts-check
// The page: its state, its tabs, and what a change draws again.

/** @returns {State} */
function readState(/** @type {Data} */ data) {
  const hash = new URLSearchParams(location.hash.slice(1)), count = data.columns[0]?.values.length || 0;
  const row = (/** @type {string} */ name, /** @type {number} */ other) => {
    const text = hash.get(name), value = Number(text);
    return text !== null && Number.isInteger(value) && value >= 1 && value <= count ? value - 1 : other;
  };
  /** @type {(name: string, other: [string, boolean]) => [string, boolean]} */
  const sort = (name, other) => {
    const text = hash.get(name);
    return text ? [text.replace(/^-/, ""), text.startsWith("-")] : other;
  };
  const query = data.queries.ids.indexOf(hash.get("query") || "");
  return {
    tab: hash.get("tab") || "", sort: sort("sort", [data.order || "rank", false]), filter: hash.get("filter") || "",
    columns: hash.get("columns")?.split(",") || null, group: hash.get("group") || "", slice: hash.get("slice") || "",
    pins: new Set((hash.get("pins") || "").split(",").map(Number).filter(n => n >= 1 && n <= count).map(n => n - 1)),
    first: row("a", data.rival || 0), second: row("b", 0), queries: hash.get("queries") || "",
    querySort: sort("order", ["mean", false]), query: query < 0 ? null : query, brush: null,
  };
}

/** @param {State} state @param {Data} data */
function writeState(state, data) {
  const hash = new URLSearchParams();
  const keep = (/** @type {string} */ name, /** @type {string} */ value, other = "") => {
    if (value !== other) hash.set(name, value);
  };
  const sort = (/** @type {[string, boolean]} */ [id, down]) => (down ? "-" : "") + id;
  keep("tab", state.tab, document.querySelector(".panel")?.id);
  keep("sort", sort(state.sort), data.order || "rank");
  keep("filter", state.filter);
  keep("columns", state.columns?.join(",") || "");
  keep("group", state.group);
  keep("slice", state.slice);
  keep("pins", [...state.pins].map(row => row + 1).join(","));
  keep("a", String(state.first + 1), String((data.rival || 0) + 1));
  keep("b", String(state.second + 1), "1");
  keep("queries", state.queries);
  keep("order", sort(state.querySort), "mean");
  keep("query", state.query === null ? "" : data.queries.ids[state.query]);
  try {
    history.replaceState(null, "", `#${hash}`);
  } catch {
    // A page that is shown inside another, as MLflow shows artifacts, has no address of its own.
  }
}

/** Make tabs of the panels. @param {State} state @param {() => void} changed */
function buildTabs(state, changed) {
  const panels = [.../** @type {NodeListOf<HTMLElement>} */ (document.querySelectorAll(".panel"))];
  if (!panels.some(panel => panel.id === state.tab)) state.tab = panels[0].id;
  const tabs = panels.map(panel => {
    panel.setAttribute("role", "tabpanel");
    panel.setAttribute("aria-labelledby", `tab-${panel.id}`);
    return create("button", {type: "button", role: "tab", id: `tab-${panel.id}`, "aria-controls": panel.id,
      click: () => { state.tab = panel.id; changed(); }}, panel.dataset.title);
  });
  const list = create("div", {class: "tabs", role: "tablist", "aria-label": "Views",
    keydown: (/** @type {KeyboardEvent} */ event) => {
      const now = panels.findIndex(panel => panel.id === state.tab), last = panels.length - 1;
      const place = {ArrowRight: now < last ? now + 1 : 0, ArrowLeft: now ? now - 1 : last, Home: 0, End: last}[event.key];
      if (place === undefined) return;
      event.preventDefault();
      state.tab = panels[place].id;
      changed();
      tabs[place].focus();
    }}, ...tabs);
  panels[0].before(list);
  return () => panels.forEach((panel, place) => {
    panel.classList.toggle("off", panel.id !== state.tab);
    tabs[place].setAttribute("aria-selected", String(panel.id === state.tab));
    tabs[place].tabIndex = panel.id === state.tab ? 0 : -1;
    if (panel.id === state.tab) list.scrollLeft = tabs[place].offsetLeft - list.offsetLeft - list.clientWidth / 2;
  });
}

/** Let the keyboard scroll what does not fit. */
function focusScrollers() {
  for (const place of /** @type {NodeListOf<HTMLElement>} */ (document.querySelectorAll(".scroll:not(.windowed), .beside, pre")))
    if (place.scrollWidth > place.clientWidth || place.scrollHeight > place.clientHeight) place.tabIndex = 0;
    else place.removeAttribute("tabindex");
}

/**
 * Return the rows that plots draw.
 * @param {Data} data
 * @param {State} state
 * @param {Board} board
 * @param {string} cost
 * @param {number} ignored the largest difference of means that the front ignores
 */
function plotRows(data, state, board, cost, ignored) {
  const column = (/** @type {string} */ id) => data.columns.find(c => c.id === id);
  const fields = data.kind !== "sweep" ? data.columns : data.columns.filter(c => ["rank", "label", "mean", "low", "high", "differs", "retriever"].includes(c.id)
    || c.kind === "setting" || c.kind === "cost");
  const front = new Set(findFront(board.rows, column(cost)?.values || [], column("mean")?.values || [], ignored));
  const rows = board.rows.map(row => {
    /** @type {Record<string, any>} */
    const entry = {id: row, on: !state.brush || state.brush.has(row), front: front.has(row)};
    for (const field of fields) entry[field.id] = field.values[row];
    entry.name = `${entry.rank}. ${entry.label}`;
    return entry;
  });
  return {rows, losses: listLosses(data, state), ...parallelLines(data, state, board)};
}

/** Return the gold that each step loses, for the pinned combinations and the finalists. @param {Data} data @param {State} state */
function listLosses(data, state) {
  if (!data.losses) return [];
  const {steps, counts} = data.losses, labels = data.columns.find(column => column.id === "label")?.values || [];
  const systems = [...new Set([...state.pins, ...data.finalists])].sort((a, b) => a - b);
  return systems.flatMap(row => (counts[row] || []).map((value, i) => ({group: steps[i], name: `${row + 1}. ${labels[row]}`, value})));
}

const MOST_LINES = 250;

/** Return lines through the settings of the best rows. @param {Data} data @param {State} state @param {Board} board */
function parallelLines(data, state, board) {
  const mean = data.columns.find(column => column.id === "mean");
  const axes = data.columns.filter(column => column.kind === "setting" && column.shown !== null
    && new Set(column.values).size > 1).slice(0, 8);
  const chosen = board.rows.filter(row => mean?.values[row] !== null).slice(0, MOST_LINES);
  /** @type {any[]} */
  const lines = [], ticks = [];
  for (const column of [...axes, mean]) {
    if (!column) continue;
    const order = orderOf(column), known = chosen.filter(row => order[row] === order[row]);
    const low = Math.min(...known.map(row => order[row])), high = Math.max(...known.map(row => order[row]));
    const place = (/** @type {number} */ row) => (high > low ? (order[row] - low) / (high - low) : 0.5);
    for (const row of known)
      lines.push({id: row, axis: column.title, place: place(row), mean: mean?.values[row],
        on: !state.brush || state.brush.has(row)});
    const distinct = new Map(known.map(row => [order[row], row]));
    const few = distinct.size <= 12 ? [...distinct.values()] : [distinct.get(low), distinct.get(high)];
    for (const row of few)
      if (row !== undefined) ticks.push({axis: column.title, place: place(row), label: showValue(column, row)});
  }
  return {lines, ticks};
}

/**
 * Return the rows in a brush, null for an empty one.
 * @param {any} brush ranges or values by field
 * @param {string} kind
 * @param {any[]} rows
 * @returns {Set<number> | null}
 */
function rowsIn(brush, kind, rows) {
  const fields = Object.entries(brush || {});
  if (!fields.length) return null;
  const inside = (/** @type {any} */ value, /** @type {any} */ wanted, /** @type {boolean} */ range) => (range
    ? value !== null && value >= Math.min(...wanted) && value <= Math.max(...wanted) : wanted.includes(value));
  const matches = rows.filter(row => fields.every(([field, wanted]) =>
    inside(row[field], wanted, kind === "ranges" || (kind === "lines" && field === "place"))));
  return new Set(matches.map(row => row.id));
}

/** Show the tabs and plots of a page without a main table. @param {Data} data @param {State} state */
async function startWithoutBoard(data, state) {
  const plots = new Plots(data, () => ({}), () => {});
  const changed = async () => {
    showTabs();
    writeState(state, data);
    await plots.draw(byId(state.tab));
    focusScrollers();
  };
  const showTabs = buildTabs(state, changed);
  document.documentElement.classList.add("live");
  await changed();
}

/** @param {{state: State, chosen: Record<string, Record<string, string>>} | null} kept the view, if there was one before */
async function start(kept = null) {
  /** @type {Data} */
  const data = JSON.parse(new TextDecoder().decode(await inflate(byId("explorer-data").textContent || "")));
  const state = kept ? kept.state : readState(data);
  const ending = new AbortController(), {signal} = ending;
  if (!document.getElementById("board")) { await startWithoutBoard(data, state); return; }
  /** @type {Promise<Scores> | null} */
  let decoding = null;
  const scores = () => (decoding ??= inflate(byId("explorer-scores").textContent || "")
    .then(planes => new Scores(data.scores, planes)));
  const view = ["sweep", "windows"].includes(data.kind) ? null
    : new (data.kind === "traces" ? TaskView : QueryView)(data, state, byId("query"));
  /** @param {number} row */
  const openQuery = row => {
    state.query = row;
    changed();
    byId("query-title").focus({preventScroll: true});
    byId("query").scrollIntoView({block: "start"});
  };
  const board = new Board(data, state, scores, changed, view
    ? {main: "text", noun: data.noun || "queries", file: data.noun || "queries", example: data.example || "", pins: false, open: openQuery}
    : data.kind === "windows"
      ? {main: "text", noun: "queries", file: "queries", example: data.example || "", pins: false, open: null}
      : {main: "label", noun: "combinations", file: "leaderboard", example: "", pins: true, open: null});
  const queries = document.getElementById("query-table") && new Queries(data, state, board, changed);
  /** @type {() => Record<string, any[]>} */
  const tables = () => ({...plotRows(data, state, board, plots.chosen.tradeoff?.cost || "",
    Number(plots.chosen.tradeoff?.noise || 0)), ...queries?.tables()});
  /** @type {Plots} */
  const plots = new Plots(data, tables, (plot, brush, names) => {
    const kind = plot.spec.usermeta.brush, all = tables();
    state.brush = rowsIn(brush, kind, kind === "lines" ? all.lines : all.rows);
    changed(plot.id);
  }, (field, value, tab) => {
    state.filter = board.filter.value = `${field} = "${value}"`;
    state.tab = tab;
    changed();
    byId(`tab-${tab}`).focus();
  });
  const showTabs = buildTabs(state, changed);

  async function changed(/** @type {any} */ except = "") {
    showTabs();
    if (data.live) showDesk(state);
    board.show();
    view?.show();
    if (state.tab === "queries" && queries) await queries.show();
    writeState(state, data);
    const known = [...plots.views.keys()];
    if (known.length) plots.update(typeof except === "string" ? except : "");
    await plots.draw(byId(state.tab));
    focusScrollers();
  }
  for (const details of document.querySelectorAll("details"))
    details.addEventListener("toggle", () => plots.draw(byId(state.tab)), {signal});
  document.addEventListener("keydown", event => {
    const typing = event.target instanceof HTMLElement && event.target.matches("input, select, textarea");
    if (event.key === "/" && !typing) {
      event.preventDefault();
      const filter = queries && state.tab === "queries" ? queries.filter : board.filter;
      if (!filter.checkVisibility()) { state.tab = filter.closest(".panel").id; changed(); }
      filter.focus();
    }
    const menu = event.key === "Escape" && document.activeElement?.closest("details.menu, .vega-embed details");
    if (menu instanceof HTMLDetailsElement && menu.open) {
      menu.open = false;
      menu.querySelector("summary")?.focus();
    }
  }, {signal});
  document.documentElement.classList.add("live");
  showRuns(data);
  linkDefinitions(entry => {
    state.tab = "reference";
    changed();
    entry.scrollIntoView({block: "center"});
    entry.querySelector("dt")?.focus({preventScroll: true});
  });
  if (kept) plots.chosen = kept.chosen;
  if (state.slice) { const sort = state.sort; await board.slice(); state.sort = sort; }
  await changed();
  if (data.live) followServer(data, state, () => { ending.abort(); plots.close(); return plots.chosen; });
  window.requestIdleCallback?.(() => data.columns.forEach(orderOf)); // so that the first order by a text is quick too
}

start();
