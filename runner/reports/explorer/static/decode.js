// @ts-check
// Reading the data of a page, and making its elements. Everything from data becomes text, never markup.
"use strict";

/**
 * @typedef {{id: string, name: string, title: string, values: any[], format: string, kind: string, shown: boolean,
 *   definition: string, order?: Float64Array, width?: number}} Column
 * @typedef {{id: string, title: string, text: string, spec: any, choices?: Record<string, string[]>}} Plot
 * @typedef {{name: string, hits: number[][], scores: number[][], grades: number[][], values?: (number | null)[],
 *   failures: Record<string, {classes: string[], evidence: [string, any][]}>}} System
 * @typedef {{primary: string, kind: string, order?: string, example?: string, columns: Column[], plots: Plot[], queries: {ids: string[], texts: string[], types: string[],
 *   expected: string[][]}, scores: {systems: number, queries: number, low: number, step: number}, finalists: number[],
 *   rival: number, commands: string[], runs: string[], noise: number | null, systems?: System[], gold: number[][], errors?: string[],
 *   documents: {ids: string[], titles: string[], texts: (string | null)[]}, live?: Live,
 *   settings?: Record<string, string | (string | null)[]>, mlflow: {address: string, command: string}}} Data
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
   * Return the mean of each system over some queries, NaN where none counts.
   * @param {number[]} queries
   */
  means(queries) {
    const sums = new Float64Array(this.systems), counts = new Uint32Array(this.systems);
    for (const query of queries)
      for (let s = 0, at = query * this.systems; s < this.systems; s++, at++) {
        const value = this.values[at];
        if (value === value) { sums[s] += value; counts[s]++; }
      }
    return Array.from(sums, (sum, s) => (counts[s] ? sum / counts[s] : null));
  }
}
