// @ts-check
// The table in view as CSV, Markdown or LaTeX.

/**
 * Return a value as a cell; no text is a formula for a spreadsheet program.
 * @param {string | number | boolean | null} value
 */
function formatCell(value) {
  if (typeof value !== "string") return value === null ? "" : String(value);
  const text = /^ *[=+\-@\t\r\n＝＋－＠]/.test(value) ? ` ${value}` : value;
  return /[",\n\r]/.test(text) ? `"${text.replaceAll('"', '""')}"` : text;
}

/** @param {string} text */
function escapeMarkdown(text) {
  return text.replace(/[\\`*_{}[\]<>()#+!|~-]/g, sign => (sign === "-" ? sign : `\\${sign}`)).replace(/\s+/g, " ");
}

/** @param {string} text */
function escapeLatex(text) {
  /** @type {Record<string, string>} */
  const names = {"\\": "\\textbackslash{}", "~": "\\textasciitilde{}", "^": "\\textasciicircum{}"};
  return text.replace(/[\\&%$#_{}~^]/g, sign => names[sign] || `\\${sign}`).replaceAll(DASH, "--");
}

/**
 * Return rows as text; CSV has the values, the others what the table shows.
 * @param {"csv" | "md" | "tex"} kind
 * @param {Column[]} columns
 * @param {number[]} rows
 */
function exportRows(kind, columns, rows) {
  if (kind === "csv") {
    const value = (/** @type {Column} */ column, /** @type {number} */ row) =>
      formatCell(column.values[row]);
    const lines = rows.map(row => columns.map(column => value(column, row)).join(","));
    return [columns.map(column => formatCell(column.name)).join(","), ...lines, ""].join("\n");
  }
  if (kind === "md") {
    const line = (/** @type {string[]} */ cells) => `| ${cells.join(" | ")} |`;
    const rule = line(columns.map(column => (isNumeric(column) ? "---:" : "---")));
    const lines = rows.map(row => line(columns.map(column => escapeMarkdown(showValue(column, row)))));
    return [line(columns.map(column => escapeMarkdown(column.title))), rule, ...lines, ""].join("\n");
  }
  const line = (/** @type {string[]} */ cells) => `${cells.map(escapeLatex).join(" & ")} \\\\`;
  const alignment = columns.map(column => (isNumeric(column) ? "r" : "l")).join("");
  const lines = rows.map(row => line(columns.map(column => showValue(column, row))));
  return [`\\begin{tabular}{${alignment}}`, "\\hline", line(columns.map(column => column.title)), "\\hline", ...lines,
    "\\hline", "\\end{tabular}", ""].join("\n");
}

/**
 * Save text as a file.
 * @param {string} name
 * @param {string} text
 */
function saveFile(name, text) {
  const address = URL.createObjectURL(new Blob([text], {type: "text/plain"}));
  create("a", {href: address, download: name}).click();
  setTimeout(() => URL.revokeObjectURL(address), 1000);
}
