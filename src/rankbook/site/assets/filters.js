// A box that filters the rows of a long page. Without this script the page holds all of them.
(() => {
  "use strict";

  // What a reader looks for is hidden or shown whole: a row of a table, or an entry of a list.
  const rowsBelow = (start) => {
    const rows = [];
    for (let next = start.nextElementSibling; next; next = next.nextElementSibling) {
      rows.push(...next.querySelectorAll("tbody tr, li"));
    }
    return rows;
  };

  const show = (start, rows, text, status) => {
    const words = text.toLowerCase().split(/\s+/).filter(Boolean);
    let shown = 0;
    rows.forEach(([row, content]) => {
      row.hidden = !words.every((word) => content.includes(word));
      shown += !row.hidden;
    });
    // A heading goes with the rows below it.
    let heading = null;
    for (let next = start.nextElementSibling; next; next = next.nextElementSibling) {
      if (/^H[1-6]$/.test(next.tagName)) {
        heading = next;
        heading.hidden = words.length > 0;
      } else if (next.querySelector("tbody tr, li")) {
        next.hidden = !next.querySelector("tbody tr:not([hidden]), li:not([hidden])");
        if (heading && !next.hidden) heading.hidden = false;
      }
    }
    status.textContent = words.length ? `${shown} of ${rows.length}` : "";
  };

  const add = (place) => {
    const rows = rowsBelow(place).map((row) => [row, `${headingOf(place, row)} ${row.textContent}`.toLowerCase()]);
    if (rows.length < 10 || place.firstChild) return;
    const box = document.createElement("input");
    box.type = "search";
    box.placeholder = "Filter this page";
    box.setAttribute("aria-label", "Filter this page");
    const status = document.createElement("span");
    status.setAttribute("role", "status");
    place.append(box, status);
    let waiting = 0;
    box.addEventListener("input", () => {
      clearTimeout(waiting);
      waiting = setTimeout(() => show(place, rows, box.value, status), 60);
    });
  };

  // A row is found by the heading above it, too: by the namespace of a name, say.
  const headingOf = (place, row) => {
    let block = row;
    while (block.parentElement !== place.parentElement) block = block.parentElement;
    while (block !== place && !/^H[1-6]$/.test(block.tagName)) block = block.previousElementSibling;
    return block === place ? "" : block.textContent;
  };

  const start = () => document.querySelectorAll(".rankbook-filter").forEach(add);
  // A theme that loads pages without leaving the first one says so by this.
  if (window.document$) window.document$.subscribe(start);
  else if (document.readyState === "loading") document.addEventListener("DOMContentLoaded", start);
  else start();
})();
