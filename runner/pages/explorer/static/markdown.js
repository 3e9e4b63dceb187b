// @ts-check
// Markdown as readers see it: without marks, links, front matter and the shortcodes of site generators.

const MARKDOWN_FILE = /\.(?:md|mdx|markdown)(?:#|$)/i;

/** What other texts hardly contain: front matter, a heading before a blank line, a fence, a link. */
const MARKDOWN_SIGNS = [
  /^\ufeff?(?:---|\+\+\+)[ \t]*\n/, /^\s*#{1,6} [^\n]+\n[ \t]*\n/, /^ {0,3}```/m, /(?:^|[\s(])!?\[[^\]\n]+\]\([^)\s]+\)/,
];

/** @type {[RegExp, string][]} */
const MARKS = [
  [/^\ufeff?(---|\+\+\+)[ \t]*\n[^]*?\n\1[ \t]*\n/, ""],
  [/<!-{2}[^]*?-{2}>|\{\{[<%][^]*?[%>]\}\}|\{%[^]*?%\}/g, ""],
  [/^ {0,3}#{1,6}[ \t]+(.*?)(?:[ \t]+#+)?(?:[ \t]*\{#[^}\n]*\})?[ \t]*$/gm, "$1"],
  [/(?<![\w\])])!?\[([^\]\n]*)\]\([^()\n]*(?:\([^()\n]*\)[^()\n]*)*\)/g, "$1"],
  [/(?<![\w\])])!?\[([^\]\n]+)\]\[[^\]\n]*\]/g, "$1"],
  [/(\*\*|__)(?=\S)([^\n]+?)(?<=\S)\1/g, "$2"],
  [/(?<![\w*])\*(?=[^\s*])([^*\n]+?)(?<=\S)\*(?![\w*])/g, "$1"],
  [/`([^`\n]+)`/g, "$1"],
];

/** Return whether a document is Markdown. @param {string} name its id @param {string} text */
function isMarkdown(name, text) {
  return MARKDOWN_FILE.test(name) || MARKDOWN_SIGNS.some(sign => sign.test(text));
}

/** Return Markdown as text; what is between fences is code, which stays as it is. @param {string} text */
function showMarkdown(text) {
  const parts = text.split(/^ {0,3}(?:```|~~~)[^\n]*\n?/m);
  return parts.map((part, i) => i % 2 ? part
    : MARKS.reduce((shown, [pattern, by]) => shown.replace(pattern, by), part)).join("");
}
