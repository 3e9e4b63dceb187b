// @ts-check
// Keys for the buttons of a form, and what became of a press. Without this module, the buttons themselves do the same.
const form = /** @type {HTMLFormElement | null} */ (document.querySelector("#keys"));
const note = /** @type {HTMLInputElement | null} */ (document.querySelector("#note"));
const text = /** @type {HTMLElement | null} */ (document.querySelector("#document"));
const message = /** @type {HTMLElement | null} */ (document.querySelector("#message"));
const MESSAGE = "desk-message"; // of the page before this one
const OUT_OF_DATE = 409;
const NO_ANSWER = "Nothing was saved: the server does not answer. Start it again by the same command, and open the address that it prints.";
let sent = false;

/** Show a message, which a screen reader reads. @param {string} words */
function say(words) {
  if (message) message.textContent = words;
}

/** Send the form, then show the next pair; if nothing was saved, say why. @param {HTMLButtonElement} button */
async function send(button) {
  if (!form || sent) return;
  sent = true;
  say("");
  const body = new URLSearchParams(/** @type {any} */ (new FormData(form, button)));
  const reply = await fetch(form.action, {method: "POST", body, redirect: "manual"}).catch(() => null);
  const isSaved = reply?.type === "opaqueredirect", isOld = reply?.status === OUT_OF_DATE;
  const problem = reply ? await reply.text() : NO_ANSWER;
  if (isSaved && button.value === "note") {
    sent = false;
    say(note?.value ? "Note saved." : "Note removed.");
    text?.focus({preventScroll: true});
  } else if (isSaved || isOld) {
    if (isOld) sessionStorage.setItem(MESSAGE, problem);
    location.assign(location.pathname);
  } else {
    sent = false;
    say(problem);
  }
}

text?.focus({preventScroll: true}); // so that space and arrows scroll the document
const before = sessionStorage.getItem(MESSAGE);
if (before) setTimeout(say, 100, before); // a screen reader reads what is new on a page
sessionStorage.removeItem(MESSAGE);
addEventListener("pageshow", () => { sent = false; });
form?.addEventListener("submit", event => {
  event.preventDefault();
  if (event.submitter instanceof HTMLButtonElement) send(event.submitter);
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
  if (button && !button.disabled && !event.repeat) {
    event.preventDefault();
    form?.requestSubmit(button);
  }
});
