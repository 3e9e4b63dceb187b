// Sorting and filtering; without it the page says the same.
"use strict";
for (const table of document.querySelectorAll("table.sortable")) {
  const heads = [...table.tHead.rows[0].cells], body = table.tBodies[0];
  heads.forEach((head, column) => {
    const button = document.createElement("button");
    button.append(...head.childNodes);
    head.append(button);
    button.addEventListener("click", () => {
      const numeric = head.classList.contains("n");
      const before = head.getAttribute("aria-sort");
      const down = before ? before === "ascending" : numeric && column > 0;
      heads.forEach(other => other.removeAttribute("aria-sort"));
      head.setAttribute("aria-sort", down ? "descending" : "ascending");
      const value = row => {
        const cell = row.cells[column];
        if (!numeric) return cell.textContent;
        return parseFloat(cell.dataset.v ?? cell.textContent.replace(/^\[/, ""));
      };
      const order = (a, b) => {
        const x = value(a), y = value(b);
        if (x !== x || y !== y) return (x !== x) - (y !== y);
        const sign = typeof x === "number" ? x - y : x.localeCompare(y, "en", {numeric: true});
        return down ? -sign : sign;
      };
      body.append(...[...body.rows].sort(order));
    });
  });
}
for (const input of document.querySelectorAll("[data-filter]")) {
  const place = document.getElementById(input.dataset.filter);
  const items = [...(place.tBodies ? place.tBodies[0].rows : place.children)];
  const texts = items.map(item => item.textContent.toLowerCase());
  input.parentNode.hidden = false;
  input.addEventListener("input", () => {
    const words = input.value.toLowerCase().split(/\s+/).filter(Boolean);
    let shown = 0;
    items.forEach((item, i) => {
      item.hidden = !words.every(word => texts[i].includes(word));
      shown += !item.hidden;
    });
    input.parentNode.querySelector("output").textContent = words.length ? `${shown} of ${items.length}` : "";
  });
}
