// @ts-check
// A page that a server shows: whole texts on demand, newer data while a sweep is running, and the desk in a tab.

/** What a server says of the data of a page. @typedef {{version: string, running: boolean, finished: number}} Live */

const ASK_MS = 2000;
const LOADING_SHARE = 10; // a page that takes a second to load is loaded at most every ten seconds

/** @type {WeakMap<Data, Set<number>>} */
const loadedTexts = new WeakMap();

/**
 * Load the whole texts of the documents of a query, once; return whether there are new ones.
 * @param {Data} data
 * @param {number} query
 */
async function loadTexts(data, query) {
  const loaded = loadedTexts.get(data) || new Set();
  if (!data.live || loaded.has(query)) return false;
  loadedTexts.set(data, loaded.add(query));
  try {
    const asked = new URLSearchParams(location.search);
    asked.set("query", data.queries.ids[query]);
    const reply = await fetch(`texts?${asked}`);
    if (!reply.ok) return false;
    /** @type {Record<string, {title: string, text: string, before: string, after: string}>} */
    const texts = await reply.json();
    const {documents} = data;
    let isNew = false;
    (documents.keys || documents.ids).forEach((key, place) => {
      const entry = Object.hasOwn(texts, key) ? texts[key] : null;
      const around = documents.around?.[place] || ["", ""];
      if (!entry || documents.texts[place] === entry.text && around[0] === entry.before && around[1] === entry.after) return;
      documents.titles[place] = entry.title;
      documents.texts[place] = entry.text;
      if (documents.around) documents.around[place] = [entry.before, entry.after];
      isNew = true;
    });
    return isNew;
  } catch {
    loaded.delete(query); // the server may come back
    return false;
  }
}

/** Show the desk in its tab, loaded once; the rest of the page then leaves it the window. @param {State} state */
function showDesk(state) {
  const place = byId("judge"), isOpen = state.tab === place.id;
  document.documentElement.classList.toggle("judging", isOpen);
  if (isOpen && !place.firstChild) place.append(create("iframe", {src: "desk/", title: "Judging desk"}));
}

/** Return what a reader is doing that newer data would interrupt, "" for nothing. @param {State} state */
function describeWork(state) {
  if (state.tab === "judge") return "leave the tab Judge";
  if (document.querySelector("dialog[open]")) return "close the details";
  if (document.querySelector("details.menu[open]")) return "close the menu";
  return state.brush ? "clear the brush" : "";
}

/**
 * Show newer data while a sweep is running, in the view as it is.
 * @param {Data} data
 * @param {State} state
 * @param {() => Record<string, Record<string, string>>} close ends the page as it is, and returns the choices of its plots
 */
async function followServer(data, state, close) {
  const shown = data.live;
  if (!shown) return;
  const place = byId("live-state");
  const count = (/** @type {Live} */ live) => `${live.finished.toLocaleString("en")} combinations finished`;
  let live = shown, pause = ASK_MS;
  place.textContent = live.running ? `The sweep is running: ${count(live)}.` : "";
  while (live.running || live.version !== shown.version) {
    await new Promise(resolve => setTimeout(resolve, pause));
    try {
      live = await (await fetch("state")).json();
      const work = describeWork(state);
      if (live.version === shown.version) continue;
      place.textContent = `${count(live)}. To see them, ${work}.`;
      if (work) continue;
      const begin = performance.now();
      if (await showNewer(data, state, close)) return; // the new page asks from now on
      pause = Math.max(ASK_MS, LOADING_SHARE * (performance.now() - begin));
    } catch {
      place.textContent = "The server does not answer. The page shows the last data.";
    }
  }
}

/**
 * Replace what the page shows by newer data; return whether there are any.
 * @param {Data} data
 * @param {State} state
 * @param {() => Record<string, Record<string, string>>} close
 */
async function showNewer(data, state, close) {
  const reply = await fetch(location.pathname + location.search);
  if (!reply.ok) return false;
  const next = new DOMParser().parseFromString(await reply.text(), "text/html");
  const main = next.querySelector("main"), desk = byId("judge"), here = desk.parentElement;
  const packed = next.getElementById("explorer-data")?.textContent;
  if (!main || !here || !packed) return false;
  /** @type {Data} */
  const newer = JSON.parse(new TextDecoder().decode(await inflate(packed)));
  const focus = describeFocus(), scrolled = [...document.querySelectorAll(".windowed")].map(part => part.scrollTop);
  const top = scrollY;
  const chosen = close();
  document.querySelectorAll("dialog.details").forEach(dialog => dialog.remove());
  [...here.children].forEach(child => { if (child !== desk) child.remove(); }); // a frame that moves would load again
  [...main.children].forEach(child => { if (child.id !== "judge") desk.before(document.adoptNode(child)); });
  for (const id of ["explorer-data", "explorer-scores"])
    byId(id).textContent = next.getElementById(id)?.textContent || "";
  document.title = next.title;
  await start(moveState(state, chosen, data, newer));
  document.querySelectorAll(".windowed").forEach((part, i) => { part.scrollTop = scrolled[i] || 0; });
  scrollTo({top, behavior: "instant"});
  focus();
  return true;
}

/** Return a function that gives the focus back to the element that has it now. */
function describeFocus() {
  const active = document.activeElement;
  if (!(active instanceof HTMLElement) || active === document.body) return () => {};
  const attribute = ["id", "data-column", "aria-label", "title"].find(name => active.getAttribute(name));
  if (!attribute) return () => {};
  const selector = `${active.localName}[${attribute}="${CSS.escape(active.getAttribute(attribute) || "")}"]`;
  const range = active instanceof HTMLInputElement ? [active.selectionStart, active.selectionEnd] : null;
  return () => {
    const again = document.querySelector(selector);
    if (again instanceof HTMLElement) again.focus({preventScroll: true});
    if (again instanceof HTMLInputElement && range) again.setSelectionRange(range[0], range[1]);
  };
}

/**
 * Return the view of other data of the same sweep: rows are found by their run, columns by their name.
 * @param {State} state
 * @param {Record<string, Record<string, string>>} chosen
 * @param {Data} data
 * @param {Data} newer
 * @returns {{state: State, chosen: Record<string, Record<string, string>>}}
 */
function moveState(state, chosen, data, newer) {
  const rows = new Map(newer.runs.map((run, row) => [run, row]));
  const row = (/** @type {number} */ old) => rows.get(data.runs[old]);
  const column = (/** @type {string} */ id) => {
    const name = data.columns.find(c => c.id === id)?.name;
    return name === undefined ? id : newer.columns.find(c => c.name === name)?.id || "";
  };
  const pins = [...state.pins].map(row).filter(place => place !== undefined);
  const query = state.query === null ? -1 : newer.queries.ids.indexOf(data.queries.ids[state.query]);
  return {
    state: {...state, sort: [column(state.sort[0]) || "rank", state.sort[1]], group: column(state.group),
      columns: state.columns?.map(column).filter(Boolean) || null, pins: new Set(pins), query: query < 0 ? null : query,
      first: row(state.first) ?? newer.rival, second: row(state.second) ?? 0, brush: null},
    chosen: Object.fromEntries(Object.entries(chosen).map(([plot, names]) =>
      [plot, Object.fromEntries(Object.entries(names).map(([name, id]) => [name, column(id) || id]))])),
  };
}
