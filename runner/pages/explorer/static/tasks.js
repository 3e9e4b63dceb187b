// @ts-check
// One task of agents: for each configuration, the files that it found, the gold that it missed, and its tool calls.

class TaskView {
  /** @param {Data} data @param {State} state @param {HTMLElement} place */
  constructor(data, state, place) {
    this.data = data;
    this.state = state;
    this.place = place;
    /** @type {number | null} */
    this.shown = null;
  }

  show() {
    const {data, state, place} = this, row = state.query;
    if (row === this.shown) return; // so that what a reader opened stays open
    this.shown = row;
    if (row === null) { place.replaceChildren(); return; }
    const clusters = data.clusters || [], others = [...clusters.keys()].filter(other => clusters[other] === clusters[row]);
    const rows = [row, ...others.filter(other => other !== row)].slice(0, MOST_SIDE_BY_SIDE).sort((a, b) => a - b);
    place.replaceChildren(
      create("h3", {id: "query-title", tabindex: "-1"}, data.queries.texts[row]),
      ...(others.length > rows.length ? [create("p", {class: "about"},
        `${rows.length} of ${others.length} runs of this task. Choose another row to see its run.`)] : []),
      create("div", {class: "beside"}, ...rows.map(each => this.run(each))),
      ...rows.map(each => this.timeline(each)),
    );
  }

  /** Return what a configuration found in a task. @param {number} row */
  run(row) {
    const {data} = this, task = (data.tasks || [])[row];
    const configuration = data.columns.find(column => column.name === "configuration");
    const name = configuration ? configuration.values[row] : data.queries.ids[row];
    if (!task)
      return create("section", {class: "system", "aria-label": name}, create("h4", {}, name),
        create("p", {class: "about"}, "The files of this task are not in this page. report.json has its figures, "
          + "artifacts.jsonl its files."));
    return create("section", {class: "system", "aria-label": name},
      create("h4", {}, name),
      create("p", {class: "about"}, task.note),
      ...(task.degraded ? [create("p", {class: "about"}, `Unreadable: ${task.degraded}`)] : []),
      ...(task.missed.length ? [create("p", {}, create("strong", {}, "Gold never found")),
        create("ul", {class: "files"}, ...task.missed.map(file => create("li", {}, ...this.file([file, 1]))))] : []),
      create("p", {}, create("strong", {}, "Files in the order in which they were first seen")),
      task.files.length ? create("ol", {class: "files"}, ...task.files.map(file =>
        create("li", {class: file[1] ? "relevant" : null}, ...this.file(file)))) : create("p", {class: "about"}, "None."),
      ...(task.others ? [create("p", {class: "about"}, `and ${task.others.toLocaleString("en")} more`)] : []),
      this.events(task.events));
  }

  /** @param {[string, number]} file */
  file([name, gold]) {
    return [create("code", {}, name), ...(gold ? [" ", create("span", {class: "grade good"}, "gold")] : [])];
  }

  /** Return the tool calls of a task. @param {TaskEvent[] | null} events */
  events(events) {
    if (!events)
      return create("p", {class: "about"}, "Its tool calls are not in this page. To add those of more tasks, raise timelines.");
    const items = events.map(event => create("li", {value: event.step},
      create("p", {class: "head"}, create("strong", {}, event.tool), create("span", {class: "grade"}, event.kind),
        event.time ? create("span", {class: "score"}, event.time) : ""),
      ...(event.text ? [create("p", {class: "text"}, event.text)] : []),
      ...(event.files.length ? [create("p", {class: "text"}, ...event.files.flatMap((file, i) =>
        [i ? ", " : "", ...this.file(file)]), event.others ? ` and ${event.others.toLocaleString("en")} more` : "")] : [])));
    return create("details", {}, create("summary", {}, `Tool calls (${events.length.toLocaleString("en")})`),
      create("ol", {}, ...items));
  }

  /** Return the timeline of a task, if the page has it. @param {number} row */
  timeline(row) {
    const name = this.data.queries.ids[row];
    const drawn = document.querySelector(`[data-timeline="${CSS.escape(name)}"] svg`);
    if (!drawn) return "";
    return create("div", {class: "scroll"}, create("p", {class: "about"}, drawn.getAttribute("aria-label") || ""),
      drawn.cloneNode(true));
  }
}
