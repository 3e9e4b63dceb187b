// @ts-check
// Reading the data of a page, and making its elements. Everything from data becomes text, never markup.
"use strict";

/**
 * @typedef {{id: string, name: string, title: string, values: any[], format: string, kind: string, shown: boolean,
 *   definition: string, order?: Float64Array, width?: number}} Column
 * @typedef {{id: string, title: string, text: string, spec: any, choices?: Record<string, string[]>}} Plot
 * @typedef {{name: string, row?: number, hits: number[][], scores: number[][], grades: number[][], values?: (number | null)[],
 *   failures: Record<string, {classes: [string, string][], evidence: [string, any][]}>}} System
 * @typedef {{step: number, tool: string, kind: string, files: [string, number][], others: number, time?: string,
 *   text?: string}} TaskEvent
 * @typedef {{note: string, degraded: string, files: [string, number][], others: number, missed: string[],
 *   events: TaskEvent[] | null}} Task
 * @typedef {{primary: string, kind: string, noun?: string, clusters?: number[] | null, slices?: Record<string, string[]>, losses?: {steps: string[], counts: (number[] | null)[]}, tasks?: Task[], order?: string, example?: string, columns: Column[], plots: Plot[], queries: {ids: string[], texts: string[], types: string[],
 *   expected: string[][]}, scores: {systems: number, queries: number, low: number, step: number}, finalists: number[],
 *   rival: number, commands: string[], comparing: string, runs: string[], noise: number | null, systems?: System[], gold: number[][], errors?: string[],
 *   documents: {ids: string[], titles: string[], texts: (string | null)[], notes?: string[], keys?: string[], parents?: string[], around?: [string, string][]}, live?: Live,
 *   settings?: Record<string, string | (string | null)[]>, mlflow: {address: string, command: string},
 *   common_words: string[]}} Data
 */

/**
 * Return the bytes that an element of the page holds as compressed text.
 * @param {string} text
 */
async function inflate(text) {
  const binary = atob(text.trim()), bytes = new Uint8Array(binary.length);
  for (let i = 0; i < binary.length; i++) bytes[i] = binary.charCodeAt(i);
  const stream = new Blob([bytes]).stream().pipeThrough(new DecompressionStream("gzip"));
  return new Uint8Array(await new Response(stream).arrayBuffer());
}

/**
 * @param {string} id
 * @returns {HTMLElement}
 */
function byId(id) {
  const element = document.getElementById(id);
  if (!element) throw new Error(`the page has no element "${id}"`);
  return element;
}

/**
 * Return a new element; children that are no elements become text.
 * @param {string} tag
 * @param {Record<string, any>} [attributes]
 * @param {any[]} children
 * @returns {any}
 */
function create(tag, attributes = {}, ...children) {
  const element = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) {
    if (value === null || value === undefined || value === false) continue;
    if (typeof value === "function") element.addEventListener(name, value);
    else element.setAttribute(name, value === true ? "" : String(value));
  }
  element.append(...children.map(child => (child instanceof Node ? child : String(child))));
  return element;
}

/**
 * Return a labelled select.
 * @param {string} label
 * @param {[string, string][]} options pairs of value and text
 * @param {string} chosen
 * @param {(value: string) => void} change
 */
function createSelect(label, options, chosen, change) {
  const select = create("select", {change: (/** @type {any} */ event) => change(event.target.value)});
  for (const [value, text] of options) select.append(create("option", {value, selected: value === chosen}, text));
  return create("label", {class: "control"}, create("span", {}, label), select);
}

const FEWEST_FOR_INTERVAL = 5;

/**
 * Return the 0.975 quantile of Student's t (Abramowitz and Stegun 1964, 26.7.5), within 0.001 from four degrees on.
 * @param {number} degrees
 */
function quantileOfT(degrees) {
  const z = 1.959964, terms = [
    (z ** 3 + z) / 4,
    (5 * z ** 5 + 16 * z ** 3 + 3 * z) / 96,
    (3 * z ** 7 + 19 * z ** 5 + 17 * z ** 3 - 15 * z) / 384,
    (79 * z ** 9 + 776 * z ** 7 + 1482 * z ** 5 - 1920 * z ** 3 - 945 * z) / 92160,
  ];
  return terms.reduce((sum, term, i) => sum + term / degrees ** (i + 1), z);
}

/**
 * Return the mean of values and half the width of its 95 % interval; null for NaN only, or for fewer than five units.
 * Values of a cluster (variants of a query, runs of a task) depend on each other: together they are one unit.
 * @param {number[]} values
 * @param {number[] | null} [clusters]
 * @returns {{mean: number | null, half: number | null}}
 */
function meanOf(values, clusters) {
  let n = 0, sum = 0;
  for (const value of values) if (value === value) { n++; sum += value; }
  if (!n) return {mean: null, half: null};
  const mean = sum / n;
  let size = n, squares = 0;
  if (clusters) {
    /** @type {Map<number, number>} */
    const units = new Map();
    values.forEach((value, i) => {
      if (value === value) units.set(clusters[i], (units.get(clusters[i]) || 0) + value - mean);
    });
    size = units.size;
    for (const value of units.values()) squares += value * value;
  } else for (const value of values) if (value === value) squares += (value - mean) ** 2;
  if (size < FEWEST_FOR_INTERVAL) return {mean, half: null};
  return {mean, half: quantileOfT(size - 1) * Math.sqrt((size / (size - 1)) * squares) / n};
}

/** Scores by query and system, decoded. */
class Scores {
  /**
   * @param {Data["scores"]} shape
   * @param {Uint8Array} planes high bytes, then low bytes, the systems of a query side by side
   */
  constructor(shape, planes) {
    this.systems = shape.systems;
    this.queries = shape.queries;
    const count = this.systems * this.queries;
    this.values = new Float32Array(count);
    for (let i = 0; i < count; i++) {
      const level = planes[i] * 256 + planes[count + i];
      this.values[i] = level === 65535 ? NaN : shape.low + level * shape.step;
    }
  }

  /** @param {number} query @param {number} system */
  at(query, system) {
    return this.values[query * this.systems + system];
  }

  /**
   * Return the mean of each system over some queries and half the width of its interval, null where too few count.
   * @param {number[]} queries
   * @param {number[] | null} [clusters]
   */
  summarise(queries, clusters) {
    const rows = Array.from({length: this.systems}, (_, system) => meanOf(queries.map(query => this.at(query, system)),
      clusters ? queries.map(query => clusters[query]) : null));
    return {means: rows.map(row => row.mean), halves: rows.map(row => row.half)};
  }
}
