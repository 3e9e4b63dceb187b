// @ts-check
// Plots: Vega is read when the first one is drawn. A brush in one selects rows everywhere.

/** @param {string} name */
function colorOf(name) {
  return getComputedStyle(document.documentElement).getPropertyValue(`--${name}`).trim();
}

const dark = matchMedia("(prefers-color-scheme: dark)");

/**
 * Return a copy of a specification with its `$` names filled in.
 * @param {any} value
 * @param {Record<string, string>} names
 * @returns {any}
 */
function fillIn(value, names) {
  if (Array.isArray(value)) return value.map(part => fillIn(part, names));
  if (value && typeof value === "object")
    return Object.fromEntries(Object.entries(value).map(([key, part]) => [key, fillIn(part, names)]));
  if (typeof value !== "string") return value;
  if (value.startsWith("$")) return names[value.slice(1)] ?? (colorOf(value.slice(1)) || value);
  return value.replace(/'\$(\w+)'/g, (whole, name) => (names[name] ? `'${names[name]}'` : whole));
}

class Plots {
  /**
   * @param {Data} data
   * @param {() => Record<string, any[]>} tables the rows that plots draw, by name
   * @param {(plot: Plot, brush: any, names: Record<string, string>) => void} select
   * @param {(field: string, value: string, tab: string) => void} open show the rows of a mark in the main table
   */
  constructor(data, tables, select, open = () => {}) {
    this.data = data;
    this.tables = tables;
    this.select = select;
    this.open = open;
    /** @type {Map<string, {view: any, plot: Plot}>} */
    this.views = new Map();
    /** @type {Record<string, Record<string, string>>} */
    this.chosen = {};
    /** @type {Promise<any> | null} */
    this.library = null;
    dark.addEventListener("change", () => this.redraw());
    window.addEventListener("beforeprint", () => this.views.forEach(({view}) => view.resize().run()));
  }

  /** Load Vega from the page. */
  load() {
    this.library ??= (async () => {
      for (const element of document.querySelectorAll("script[data-library]")) {
        const source = new TextDecoder().decode(await inflate(element.textContent || ""));
        (0, eval)(source);
      }
      return /** @type {any} */ (globalThis);
    })();
    return this.library;
  }

  /** Draw the plots of a panel that are not drawn yet. @param {HTMLElement} panel */
  async draw(panel) {
    for (const figure of panel.querySelectorAll("figure[data-plot]")) {
      const plot = this.data.plots.find(p => p.id === figure.getAttribute("data-plot"));
      if (plot && !this.views.has(plot.id) && figure.checkVisibility()) await this.embed(plot, figure);
    }
  }

  async redraw() {
    for (const {plot} of [...this.views.values()]) {
      const figure = document.querySelector(`figure[data-plot="${plot.id}"]`);
      if (figure) await this.embed(plot, figure);
    }
  }

  /** @param {Plot} plot @param {Element} figure */
  async embed(plot, figure) {
    const {vegaEmbed} = await this.load();
    const names = this.names(plot);
    const spec = fillIn(plot.spec, names), tables = this.tables();
    const count = (tables.rows || []).length;
    const place = figure.querySelector(".plot") || create("div", {class: "plot"});
    if (!place.isConnected) {
      figure.querySelector(".choices")?.replaceChildren(...this.controls(plot, figure));
      figure.querySelector(".choices")?.after(place);
    }
    this.views.get(plot.id)?.view.finalize();
    const {view} = await vegaEmbed(place, {...spec, datasets: this.datasets(spec, tables)}, {
      actions: {export: {svg: true, png: true}, source: false, compiled: false, editor: false},
      renderer: count > 1500 ? "canvas" : "svg", downloadFileName: plot.id, config: this.theme(), hover: false,
      logLevel: 1, // errors only
    });
    this.views.set(plot.id, {view, plot});
    // The caption and the tables of the figure say what the drawing shows.
    place.querySelector("svg.marks, canvas")?.setAttribute("aria-hidden", "true");
    place.querySelector("summary")?.setAttribute("aria-label", `Save the plot "${plot.title}"`);
    const opens = plot.spec.usermeta?.opens;
    if (opens) view.addEventListener("click", (/** @type {any} */ _, /** @type {any} */ item) => {
      if (item?.datum?.[opens.field]) this.open(opens.field, item.datum[opens.field], opens.tab);
    });
    if (plot.spec.usermeta?.brush) {
      let timer = 0;
      view.addSignalListener("brush", (/** @type {string} */ _, /** @type {any} */ brush) => {
        clearTimeout(timer);
        timer = setTimeout(() => this.select(plot, brush, names), 80);
      });
    }
  }

  /** Remove the drawings. */
  close() {
    this.views.forEach(({view}) => view.finalize());
    this.views.clear();
  }

  /** Return the rows of each data set that a specification names. @param {any} spec @param {Record<string, any[]>} tables */
  datasets(spec, tables) {
    const used = [spec, ...(spec.layer || [])].map(part => part.data?.name).filter(Boolean);
    return Object.fromEntries(used.map(name => [name, tables[name] || []]));
  }

  /** Draw the current rows in every plot except the one that was brushed. @param {string} [except] */
  update(except = "") {
    const tables = this.tables();
    for (const [id, {view, plot}] of this.views) {
      if (id === except) continue;
      for (const name of Object.keys(this.datasets(plot.spec, tables)))
        view.change(name, /** @type {any} */ (globalThis).vega.changeset().remove(() => true).insert(tables[name] || []));
      view.runAsync();
    }
  }

  /** Return the names that a specification is filled in with. @param {Plot} plot */
  names(plot) {
    const chosen = (this.chosen[plot.id] ??= Object.fromEntries(
      Object.entries(plot.choices || {}).map(([name, ids], i) => [name, ids[plot.id === "heat" ? i : 0] ?? ids[0]])));
    /** @type {Record<string, string>} */
    const names = {heat: dark.matches ? "viridis" : "blues"};
    for (const [name, id] of Object.entries(chosen)) {
      const column = this.data.columns.find(c => c.id === id);
      if (column)
        Object.assign(names, {[name]: id, [`${name}Title`]: column.title,
          [`${name}Type`]: isNumeric(column) ? "quantitative" : "ordinal",
          [`${name}Scale`]: column.values.some(value => value === 0) ? "symlog" : "log"});
    }
    return names;
  }

  /** @param {Plot} plot @param {Element} figure */
  controls(plot, figure) {
    const noise = plot.id === "tradeoff" && this.data.noise;
    const front = noise ? [createSelect("front", [["0", "every difference"],
      [String(noise), `differences above ${noise.toFixed(4)}`]], "0", value => {
      this.chosen[plot.id].noise = value;
      this.update();
    })] : [];
    const choices = Object.entries(plot.choices || {}).filter(([, ids]) => ids.length > 1).map(([name, ids]) => {
      /** @type {[string, string][]} */
      const options = ids.map(id => [id, this.data.columns.find(c => c.id === id)?.title || id]);
      const label = name.length === 1 ? `${name} axis` : name;
      return createSelect(label, options, this.names(plot)[name], value => {
        this.chosen[plot.id][name] = value;
        this.update();
        this.embed(plot, figure);
      });
    });
    return [...choices, ...front];
  }

  theme() {
    const ink = colorOf("ink"), muted = colorOf("muted"), line = colorOf("line");
    const font = getComputedStyle(document.body).fontFamily;
    const category = Array.from({length: 8}, (_, i) => colorOf(`series-${i}`));
    const labels = {labelColor: muted, titleColor: muted, labelFont: font, titleFont: font, titleFontWeight: 500,
      labelFontSize: 12, titleFontSize: 12};
    return {background: null, font, view: {stroke: null}, range: {category},
      axisQuantitative: {labelOverlap: "greedy", labelSeparation: 8},
      axis: {...labels, gridColor: line, domainColor: line, tickColor: line},
      axisY: {labelLimit: innerWidth < 700 ? 110 : 230},
      legend: {...labels, orient: "top", columns: innerWidth < 700 ? 1 : 3, labelLimit: 300, gradientLength: 140}};
  }
}
