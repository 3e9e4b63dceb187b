// @ts-check
// Keys for the buttons of a form. Without this module, the buttons themselves do the same.
const form = /** @type {HTMLFormElement | null} */ (document.querySelector("#keys"));
const note = /** @type {HTMLInputElement | null} */ (document.querySelector("#note"));
const text = /** @type {HTMLElement | null} */ (document.querySelector("#document"));
let sent = false;

text?.focus({preventScroll: true}); // so that space and arrows scroll the document
addEventListener("pageshow", () => { sent = false; });
form?.addEventListener("submit", event => {
  if (sent) event.preventDefault();
  sent = true;
});
addEventListener("keydown", event => {
  if (event.ctrlKey || event.metaKey || event.altKey || event.isComposing) return;
  if (note && event.target === note) {
    if (event.key === "Escape") text?.focus({preventScroll: true});
    return;
  }
  const key = event.key.toLowerCase();
  if (key === "n" && note) {
    event.preventDefault();
    note.focus();
    return;
  }
  /** @type {HTMLButtonElement[]} */
  const buttons = [...(form?.querySelectorAll("button") ?? [])];
  const button = buttons.find(one => one.dataset.key === key);
  if (button && !button.disabled && !event.repeat && !sent) {
    event.preventDefault();
    form?.requestSubmit(button);
  }
});
