// @ts-check
// From figures to their definitions, and from systems to their runs: MLflow, the settings, the command that repeats them.

/** Return a word as a shell reads it unchanged. @param {string} word */
function quoteWord(word) {
  return /^[\w@%+=:,.\/-]+$/.test(word) ? word : `'${word.replaceAll("'", `'"'"'`)}'`;
}

/** Return the overrides of a system. @param {Data} data @param {number} system */
function listSettings(data, system) {
  return Object.values(data.settings || {}).map(value => (Array.isArray(value) ? value[system] : value))
    .filter(override => override !== null);
}

/** Return the command that compares two systems of a sweep as its leaderboard does. @param {Data} data @param {number} first @param {number} second */
function commandOf(data, first, second) {
  return `python -m runner compare baseline=${data.runs[first]} candidate=${data.runs[second]} ${data.comparing}`.trim();
}

/** Return a text with a button that copies it. @param {string} text @param {string} what */
function createCopied(text, what) {
  const button = create("button", {type: "button", "aria-label": `Copy ${what}`, click: async () => {
    try {
      await navigator.clipboard.writeText(text);
      button.textContent = "Copied";
    } catch { // a page from disk may have no clipboard
      const range = document.createRange();
      range.selectNodeContents(code);
      getSelection()?.removeAllRanges();
      getSelection()?.addRange(range);
      button.textContent = "Selected: press Ctrl-C";
    }
  }}, "Copy");
  const code = create("pre", {tabindex: "0", "aria-label": what}, text);
  return create("div", {class: "copied"}, code, button);
}

/** Return the run of a system; a report of a single run is among the artifacts of its run. @param {Data} data @param {number} system */
function findRun(data, system) {
  const known = data.runs?.[system];
  if (known || data.kind !== "run") return known || "";
  return location.pathname.match(/\/([0-9a-f]{32})\/artifacts\/[^/]+$/)?.[1] || "";
}

/** Return the way to the run of a system: MLflow, the command, the settings. @param {Data} data @param {number} system */
function describeRun(data, system) {
  const run = findRun(data, system), {address, command} = data.mlflow || {address: "", command: ""};
  const settings = listSettings(data, system), parts = [];
  if (run) {
    const link = address ? create("a", {href: `${address}/#/runs/${run}`, target: "_blank", rel: "noopener"}, "Open in MLflow") : "";
    parts.push(create("p", {}, "Run ", create("code", {}, run), " \u00b7 ", link || "shown by your MLflow server",
      command ? create("span", {class: "about"}, ", after ", create("code", {}, command)) : ""));
  }
  if (settings.length) {
    const rows = settings.map(override => {
      const end = override.indexOf("=");
      return create("tr", {}, create("th", {scope: "row"}, override.slice(0, end)), create("td", {}, override.slice(end + 1)));
    });
    parts.push(
      create("h4", {}, "Command that repeats it"),
      createCopied(["python -m runner", ...settings.map(quoteWord)].join(" "), "the command"),
      create("details", {}, create("summary", {}, "Configuration"), create("div", {class: "scroll"},
        create("table", {"aria-label": "Configuration"}, create("tbody", {}, ...rows)))));
  }
  return parts;
}

/** Show the runs of a page that has few; the rows of a leaderboard have theirs in their details. @param {Data} data */
function showRuns(data) {
  const place = document.getElementById("runs");
  if (!place || data.kind === "sweep") return;
  const names = (data.systems || []).map(system => system.name);
  const runs = names.map((name, system) => ({name, parts: describeRun(data, system)})).filter(({parts}) => parts.length);
  if (runs.length) place.replaceChildren(create("section", {}, create("h2", {}, "Runs"), ...runs.flatMap(({name, parts}) =>
    [create("h3", {}, name), ...parts])));
}

/**
 * Make the terms in headings, captions and tables lead to their definitions.
 * @param {(entry: HTMLElement) => void} open
 */
function linkDefinitions(open) {
  const entries = [.../** @type {NodeListOf<HTMLElement>} */ (document.querySelectorAll(".definitions [data-pattern]"))]
    .filter(entry => entry.dataset.pattern);
  if (!entries.length) return;
  const patterns = entries.map(entry => `(${entry.dataset.pattern})`).join("|");
  const terms = new RegExp(`(?<![\\w@])(?:${patterns})(?![\\w@])`);
  const places = document.querySelectorAll("main .tile dt, main .panel:not(#reference) :is(th:not(:has(button)), figcaption, h2, h3)");
  for (const place of places) {
    const walker = document.createTreeWalker(place, NodeFilter.SHOW_TEXT);
    /** @type {Text[]} */
    const texts = [];
    while (walker.nextNode()) texts.push(/** @type {Text} */ (walker.currentNode));
    for (const text of texts) {
      const match = terms.exec(text.data);
      if (!match || text.parentElement?.closest("a, code")) continue;
      const entry = entries[match.slice(1).findIndex(group => group !== undefined)];
      const word = text.splitText(match.index);
      word.splitText(match[0].length);
      word.replaceWith(create("a", {class: "define", href: `#${entry.id}`, title: entry.querySelector("dd")?.textContent,
        click: (/** @type {Event} */ event) => { event.preventDefault(); event.stopPropagation(); open(entry); }}, match[0]));
    }
  }
}
