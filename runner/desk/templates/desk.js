// Keys for the buttons of a form. Without this module, the buttons themselves do the same.
const form = document.querySelector("#keys");
const note = document.querySelector("#note");
const page = document.querySelector("#document");
let sent = false;

page?.focus({ preventScroll: true });  // so that space and arrows scroll the document
addEventListener("pageshow", () => { sent = false; });
form?.addEventListener("submit", (event) => {
  if (sent) event.preventDefault();
  sent = true;
});
addEventListener("keydown", (event) => {
  if (event.ctrlKey || event.metaKey || event.altKey || event.isComposing) return;
  if (event.target === note) {
    if (event.key === "Escape") page.focus({ preventScroll: true });
    return;
  }
  const key = event.key.toLowerCase();
  if (key === "n" && note) {
    event.preventDefault();
    note.focus();
    return;
  }
  const button = [...(form?.querySelectorAll("button[data-key]") ?? [])].find((one) => one.dataset.key === key);
  if (button && !button.disabled && !event.repeat && !sent) {
    event.preventDefault();
    form.requestSubmit(button);
  }
});
