// @ts-check
// Filters such as `k1 > 0.9 and encoder = minilm`, and how values are shown and ordered.

const DASH = "\u2013";

/** @type {Record<string, (value: any) => string>} */
const FORMATS = {
  text: value => String(value),
  flag: value => (value ? "yes" : ""),
  integer: value => value.toLocaleString("en"),
  number: value => String(Number(value.toPrecision(4))),
  score: value => value.toFixed(3),
  score4: value => value.toFixed(4),
  signed: value => (value < 0 ? "" : "+") + value.toFixed(4),
  p: value => (value < 0.001 ? "<0.001" : /[05]$/.test(value.toFixed(3)) && value.toFixed(3) > value && value < 0.1
    ? (Math.floor(value * 1e4) / 1e4).toFixed(4) : value.toFixed(3)),
  percent: value => (100 * value).toFixed(1) + "%",
  milliseconds: value => (value < 10 ? value.toFixed(2) : value < 100 ? value.toFixed(1)
    : Math.round(value).toLocaleString("en")),
  seconds: value => (value < 1 ? value.toFixed(3) : value < 10 ? value.toFixed(2) : value.toFixed(1)),
};

/** @param {Column} column */
function isNumeric(column) {
  return column.format !== "text" && column.format !== "flag";
}

/** @param {Column} column @param {number} row */
function showValue(column, row) {
  const value = column.values[row];
  return value === null || value === undefined || value === "" ? (column.format === "text" ? "" : DASH)
    : FORMATS[column.format](value);
}

const collator = new Intl.Collator("en", {numeric: true});

/**
 * Return numbers that order a column; NaN for no value.
 * @param {Column} column
 */
function orderOf(column) {
  if (!column.order) {
    if (column.format === "text") {
      const distinct = [...new Set(column.values)].sort((a, b) => collator.compare(String(a), String(b)));
      const places = new Map(distinct.map((value, place) => [value, place]));
      column.order = Float64Array.from(column.values, value =>
        value === null || value === "" ? NaN : Number(places.get(value)));
    } else column.order = Float64Array.from(column.values, value => (value === null ? NaN : Number(value)));
  }
  return column.order;
}

/**
 * Sort rows by a column, rows without a value last; equal rows keep their order.
 * @param {number[]} rows
 * @param {Column} column
 * @param {boolean} descending
 */
function sortRows(rows, column, descending) {
  const order = orderOf(column), sign = descending ? -1 : 1;
  return rows.slice().sort((a, b) => {
    const x = order[a], y = order[b];
    if (x !== x || y !== y) return (x !== x ? 1 : 0) - (y !== y ? 1 : 0);
    return sign * (x - y);
  });
}

/** Return the last part of a setting's name. @param {Column} column */
function shortName(column) {
  return column.kind === "setting" ? column.name.split(".").pop() || "" : column.name;
}

/**
 * Return the column of a name in a filter: its name, title or the last part of its name, in any case.
 * @param {Column[]} columns
 * @param {string} name
 */
function findColumn(columns, name) {
  const wanted = name.toLowerCase();
  const names = columns.map(c => [c.name, c.title, shortName(c)].map(text => text.toLowerCase()));
  for (let way = 0; way < 3; way++) {
    const place = names.findIndex(of => of[way] === wanted);
    if (place >= 0) return columns[place];
  }
  return null;
}

/**
 * Compile a filter; throws an Error whose message says what is wrong.
 *
 * `and`, `or`, `not` and parentheses combine comparisons (= != < <= > >=, ~ for "contains", = 1..2 for a range) and
 * words, which the text of the row must contain.
 * @param {string} text
 * @param {Column[]} columns
 * @param {(row: number) => string} textOf
 * @returns {(row: number) => boolean}
 */
function compileFilter(text, columns, textOf) {
  const pattern = /\s*(?:([()])|(!=|>=|<=|=|>|<|~)|"([^"]*)"|'([^']*)'|([^\s()=<>!~"']+))/y;
  /** @type {{kind: string, text: string}[]} */
  const tokens = [];
  const whole = text.trimEnd();
  while (pattern.lastIndex < whole.length) {
    const at = pattern.lastIndex, match = pattern.exec(whole);
    if (!match) throw new Error(`Cannot read "${whole.slice(at).trim()}". Close the quotation mark, or remove it.`);
    const [, bracket, sign, double, single, word] = match;
    const quoted = double ?? single;
    tokens.push(bracket ? {kind: bracket, text: bracket} : sign ? {kind: "sign", text: sign}
      : quoted !== undefined ? {kind: "text", text: quoted}
        : {kind: /^(and|or|not)$/i.test(word) ? word.toLowerCase() : "text", text: word});
  }
  let next = 0;
  const kind = () => tokens[next]?.kind;

  /** @returns {(row: number) => boolean} */
  function either() {
    const parts = [both()];
    while (kind() === "or") { next++; parts.push(both()); }
    return parts.length === 1 ? parts[0] : row => parts.some(part => part(row));
  }
  /** @returns {(row: number) => boolean} */
  function both() {
    const parts = [single()];
    while (kind() && kind() !== "or" && kind() !== ")") {
      if (kind() === "and") next++;
      parts.push(single());
    }
    return parts.length === 1 ? parts[0] : row => parts.every(part => part(row));
  }
  /** @returns {(row: number) => boolean} */
  function single() {
    const token = tokens[next++];
    if (!token) throw new Error("The filter ends too early. Add a comparison, such as k1 > 0.9.");
    if (token.kind === "not") { const part = single(); return row => !part(row); }
    if (token.kind === "(") {
      const part = either();
      if (kind() !== ")") throw new Error("A closing parenthesis is missing.");
      next++;
      return part;
    }
    if (token.kind !== "text") throw new Error(`"${token.text}" needs a name before it, such as k1 > 0.9.`);
    if (kind() === "sign") return compare(token.text, tokens[next++].text, tokens[next++]);
    const word = token.text.toLowerCase();
    return row => textOf(row).toLowerCase().includes(word);
  }
  /**
   * @param {string} name
   * @param {string} sign
   * @param {{kind: string, text: string} | undefined} operand
   * @returns {(row: number) => boolean}
   */
  function compare(name, sign, operand) {
    if (!operand || operand.kind !== "text") throw new Error(`"${name} ${sign}" needs a value after it.`);
    const column = findColumn(columns, name);
    if (!column) {
      const names = columns.filter(c => c.kind === "setting" || c.shown).map(shortName);
      throw new Error(`No column is named "${name}". Columns: ${names.join(", ")}.`);
    }
    const {values} = column, value = operand.text.toLowerCase();
    const range = /^(-?[\d.e+-]*?\d\.?)\.\.(-?[\d.e+-]+)$/.exec(value);
    const number = Number(value);
    if (isNumeric(column)) {
      if (range && sign === "=") {
        const low = Number(range[1]), high = Number(range[2]);
        return row => values[row] !== null && values[row] >= low && values[row] <= high;
      }
      if (value === "" || number !== number)
        throw new Error(`"${operand.text}" is not a number, but ${name} is. Compare it with a number.`);
      /** @type {Record<string, (x: number) => boolean>} */
      const signs = {"=": x => x === number, "!=": x => x !== number, ">": x => x > number, ">=": x => x >= number,
        "<": x => x < number, "<=": x => x <= number, "~": x => String(x).includes(value)};
      return row => values[row] !== null && signs[sign](values[row]);
    }
    const shown = (/** @type {number} */ row) => (column.format === "flag" ? (values[row] ? "yes" : "no")
      : values[row] === null ? "" : String(values[row]).toLowerCase());
    /** @type {Record<string, (x: string) => boolean>} */
    const signs = {"=": x => x === value, "!=": x => x !== value, "~": x => x.includes(value),
      ">": x => collator.compare(x, value) > 0, ">=": x => collator.compare(x, value) >= 0,
      "<": x => collator.compare(x, value) < 0, "<=": x => collator.compare(x, value) <= 0};
    return row => signs[sign](shown(row));
  }
  if (!tokens.length) return () => true;
  const filter = either();
  if (next < tokens.length) throw new Error(`"${tokens[next].text}" is unexpected. Remove it, or add a parenthesis.`);
  return filter;
}
