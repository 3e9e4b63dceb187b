// @ts-check
// One query: what each system ranked, side by side, with texts, grades, the gold and why it was missed.

const SNIPPET = 260;

/**
 * Return the words of a query that are worth highlighting, as a pattern; null without any.
 * @param {string} query
 * @param {string[]} common words to leave out, unless the query has no others
 */
function patternOf(query, common) {
  const all = [...new Set(query.toLowerCase().match(/[\p{L}\p{N}]{3,}/gu) || [])];
  const rare = all.filter(word => !common.includes(word)), words = rare.length ? rare : all;
  return words.length ? new RegExp(`(?<![\\p{L}\\p{N}])(?:${words.join("|")})`, "giu") : null;
}

/**
 * Return text with the words of a query marked.
 * @param {string} text
 * @param {RegExp | null} pattern
 */
function highlight(text, pattern) {
  if (!pattern) return [text];
  const parts = [];
  let end = 0;
  for (const match of text.matchAll(pattern)) {
    parts.push(text.slice(end, match.index), create("mark", {}, match[0]));
    end = match.index + match[0].length;
  }
  return [...parts, text.slice(end)];
}

/**
 * Return the part of a text around the first word of the query in it.
 * @param {string} text
 * @param {RegExp | null} pattern
 */
function snippetOf(text, pattern) {
  const found = pattern ? text.search(pattern) : -1;
  let start = found > SNIPPET / 2 ? found - SNIPPET / 3 : 0;
  if (start) start = text.indexOf(" ", start) + 1 || start;
  const cut = text.slice(start, start + SNIPPET);
  return `${start ? "\u2026 " : ""}${cut}${start + SNIPPET < text.length ? " \u2026" : ""}`;
}

/** Return what a part of a query that can be opened is about. @param {Element} details */
function nameDetails(details) {
  const document = details.closest("li")?.dataset.document;
  return `${details.closest(".system")?.getAttribute("aria-label")} ${document} ${details.querySelector("summary")?.textContent}`;
}

class QueryView {
  /**
   * @param {Data} data
   * @param {State} state
   * @param {HTMLElement} place
   * @param {(system: System, query: number) => number | null | undefined} valueOf
   */
  constructor(data, state, place, valueOf = (system, query) => system.values?.[query]) {
    this.data = data;
    this.state = state;
    this.place = place;
    this.valueOf = valueOf;
  }

  show() {
    const {data, state, place} = this, query = state.query;
    if (query === null) { place.replaceChildren(); return; }
    const {ids, texts, types} = data.queries;
    place.replaceChildren(
      create("h3", {id: "query-title", tabindex: "-1"}, texts[query] || ids[query]),
      create("p", {class: "about"}, create("code", {}, ids[query]), types[query] ? ` \u00b7 ${types[query]}` : "",
        data.errors?.[query] ? ` \u00b7 error: ${data.errors[query]}` : ""),
      ...this.hits(query, data.systems || []),
    );
    this.loadTexts(query, () => this.show());
  }

  /** Load the whole texts of a query if a server has them, and draw it again with them. @param {number} query @param {() => void} draw */
  loadTexts(query, draw) {
    const {data, state, place} = this;
    if (data.live) loadTexts(data, query).then(isNew => {
      if (!isNew || state.query !== query) return;
      const focus = describeFocus();
      const open = new Set([...place.querySelectorAll("details[open]")].map(nameDetails));
      draw();
      for (const details of place.querySelectorAll("details")) details.open = open.has(nameDetails(details));
      focus();
      focusScrollers();
    });
  }

  /** Return the hits of a query, system by system, and the gold that none ranked. @param {number} query @param {System[]} systems */
  hits(query, systems) {
    const pattern = patternOf(this.data.queries.texts[query], this.data.common_words), shown = systems.slice(0, MOST_SIDE_BY_SIDE);
    return [
      create("div", {class: "beside"}, ...shown.map(system => this.system(system, query, pattern, shown))),
      this.gold(query, pattern, shown),
    ];
  }

  /** @param {System} system @param {number} query @param {RegExp | null} pattern @param {System[]} systems */
  system(system, query, pattern, systems) {
    const grades = system.grades[query], first = grades.findIndex(grade => grade > 0);
    const value = this.valueOf(system, query);
    const failure = system.failures[query];
    const position = !this.data.gold[query].length ? "no gold" : first >= 0 ? `first gold at rank ${first + 1}`
      : `no gold in the first ${grades.length}`;
    const others = new Map(systems.filter(other => other !== system).flatMap(other =>
      other.hits[query].map((document, place) => [document, place + 1])));
    const items = system.hits[query].map((document, place) => {
      const moved = systems.length === 2 ? this.describeMove(others.get(document), place + 1) : "";
      return create("li", {class: grades[place] > 0 ? "relevant" : null, "data-document": document},
        ...this.document(document, pattern, system.scores[query][place], this.badge(grades[place]), moved));
    });
    return create("section", {class: "system", "aria-label": system.name},
      create("h4", {}, system.name),
      create("p", {class: "about"}, value === null || value === undefined || value !== value ? "" : `${this.data.primary} ${value.toFixed(3)} \u00b7 `,
        position),
      ...(failure?.classes ?? []).map(([name, advice]) => create("p", {}, create("strong", {}, name), `: ${advice}`)),
      ...(failure?.evidence.length ? [create("details", {}, create("summary", {}, "Evidence"), create("ul", {},
        ...failure.evidence.map(([meaning, shown]) => create("li", {}, `${meaning}: ${shown}`))))] : []),
      items.length ? create("ol", {}, ...items) : create("p", {class: "about"}, "No results."));
  }

  describeMove(/** @type {number | undefined} */ before, /** @type {number} */ after) {
    return before === undefined ? "only here" : before === after ? "" : `${before} in the other`;
  }

  badge(/** @type {number} */ grade) {
    return create("span", {class: `grade ${grade > 0 ? "good" : grade === 0 ? "bad" : ""}`},
      grade < 0 ? "unjudged" : `grade ${grade}`);
  }

  /**
   * @param {number} document
   * @param {RegExp | null} pattern
   * @param {number | null} score
   * @param {any} badge
   * @param {string} moved
   */
  document(document, pattern, score, badge, moved) {
    const {ids, titles, texts, notes, parents, around} = this.data.documents;
    const raw = [texts[document], ...(around?.[document] || ["", ""])];
    const isText = !isMarkdown(parents?.[document] || ids[document], `${raw[1]}${raw[0]}${raw[2]}`);
    const [text, before, after] = isText ? raw : raw.map(part => part && showMarkdown(part));
    const head = create("p", {class: "head"}, create("strong", {}, titles[document] || ids[document]),
      " ", badge, moved ? create("span", {class: "grade"}, moved) : "",
      score === null ? "" : create("span", {class: "score"}, Number(score.toPrecision(4))));
    const id = [...(titles[document] ? [create("code", {}, ids[document])] : []),
      ...(notes?.[document] ? [create("p", {class: "about"}, notes[document])] : [])];
    if (text === null || text === undefined)
      return [head, ...id, create("p", {class: "about"},
        this.data.live ? "The dataset has no text for this id." : "The text is not in this page.")];
    const snippet = snippetOf(text, pattern);
    const whole = text.length > SNIPPET
      ? [create("details", {}, create("summary", {}, "Whole text"), create("p", {class: "text"}, ...highlight(text, pattern)))] : [];
    const context = before || after
      ? [create("details", {}, create("summary", {}, `Around it, in ${parents?.[document]}`),
        create("p", {class: "text"}, before, create("mark", {class: "chunk"}, text), after))] : [];
    return [head, ...id, create("p", {class: "text"}, ...highlight(snippet, pattern)), ...whole, ...context];
  }

  /** Return the gold that no system ranked. @param {number} query @param {RegExp | null} pattern @param {System[]} systems */
  gold(query, pattern, systems) {
    const {ids, parents} = this.data.documents; // a chunk stands for its document
    const ranked = new Set(systems.flatMap(system => system.hits[query]).map(document => parents?.[document] || ids[document]));
    const missed = this.data.gold[query].filter(document => !ranked.has(ids[document]));
    if (!missed.length) return "";
    return create("section", {class: "system missed"}, create("h4", {}, "Expected, but not among these"),
      create("ul", {}, ...missed.map(document => create("li", {},
        ...this.document(document, pattern, null, create("span", {class: "grade good"}, "gold"), "")))));
  }
}
