// What a theme leaves out: names of dialogs, a way into wide tables and a sign that they go on, tables for phones, links of headings, and places
// where long names may break.
(() => {
  "use strict";

  const isReachable = (box) => box.querySelector("a[href], button, input, summary");

  // A table without links that is wider than its box is moved by the arrow keys once it has the focus.
  const BOXES = ".md-typeset__scrollwrap, .rb-scroll";
  const sizes = new ResizeObserver((entries) => new Set(entries.map(({ target }) => target.closest(BOXES))).forEach((box) => box && measure(box)));
  const measure = (box) => {
    edge(box);
    if (!box.matches(".rb-scroll")) reach(box);
  };
  // A box that holds more at its right than it shows says so by its edge.
  const edge = (box) => box.classList.toggle("rankbook-more", Math.abs(box.scrollLeft) + box.clientWidth < box.scrollWidth - 2);
  const reach = (box) => {
    const isWide = box.scrollWidth > box.clientWidth && !isReachable(box);
    Object.entries({ tabindex: "0", role: "group", "aria-label": "Table" }).forEach(([name, value]) =>
      isWide ? box.setAttribute(name, value) : box.removeAttribute(name));
  };

  const look = () => {
    document.querySelectorAll("[role=dialog]:not([aria-label], [aria-labelledby])").forEach((each) => each.setAttribute("aria-label", "Search"));
    document.querySelectorAll(BOXES).forEach((each) => [each, ...each.children].forEach((part) => sizes.observe(part)));
  };

  // A phone tells a table of several columns row by row. What a cell is there, the name of its column says before it, unless the cell does so itself.
  const SAYS_ITSELF = /^(What it |Description|About|Line|Variants)/;
  const MOST_NUMBERS = 7; // columns that the smallest phone shows side by side
  const tell = () => document.querySelectorAll(".rankbook-page table:not([class], [data-told], [data-numbers])").forEach((table) => {
    const [first, ...heads] = table.querySelectorAll("thead th");
    // Columns of numbers alone are compared with one another: they stay columns, several of them below the name of their row.
    const isOfNumbers = heads.every((head) => head.matches(".r, [style*=right]"));
    if (isOfNumbers ? heads.length < 4 : heads.length < 2 && first.textContent.trim() !== "Test") return;
    if (isOfNumbers && heads.length <= MOST_NUMBERS) {
      table.dataset.numbers = "";
      table.style.setProperty("--rb-columns", heads.length);
      return;
    }
    table.dataset.told = "";
    heads.forEach((head, place) => {
      const name = head.textContent.trim();
      const what = /\d$/.test(name) ? `${name} GPU${name === "1" ? "" : "s"}` : name; // such a table says above it what its numbers are
      if (!SAYS_ITSELF.test(name)) table.style.setProperty(`--rb-${place + 2}`, JSON.stringify(`${what}: `));
    });
  });

  // A button that copies is no part of a page that one goes to by its name, as a theme has it.
  const quiet = () => document.querySelectorAll("nav.md-code__nav:not([role])").forEach((nav) => nav.setAttribute("role", "none"));
  const added = new MutationObserver(quiet);

  // Each heading leads to itself, for who wants its address: the link shows when it is pointed at.
  const link = () => document.querySelectorAll(".rankbook-page :is(h2, h3, h4)[id]:not(:has(> .headerlink))").forEach((heading) => {
    const made = document.createElement("a");
    made.className = "headerlink";
    made.href = `#${heading.id}`;
    made.textContent = "¶";
    heading.append(made);
  });

  // The keys with which a theme turns pages (`n` and `p` of Material) follow such links in the head.
  const turn = () => {
    document.head.querySelectorAll("link[data-rankbook]").forEach((old) => old.remove());
    document.querySelectorAll(".rankbook-steps a[rel]").forEach(({ rel, href }) => {
      const made = document.createElement("link");
      Object.assign(made, { rel, href }).dataset.rankbook = "";
      document.head.append(made);
    });
  };

  // A long name breaks behind one of its words before it breaks anywhere.
  const NAMES = [
    "article :is(td, th) code",
    ".rankbook-page :is(h1, h2, h3, h4, p, li) > code, .rankbook-page li > a > code",
    ".rankbook-page td > a[href*='#L']:not(:has(code))",
    ".rankbook-rollup td:last-child, .rankbook-rollup small, .rankbook-runs td, .rb-ranks td, .md-nav--secondary .md-nav__link",
  ].join();
  const END = /([_.:/-]|[a-z0-9](?=[A-Z][a-z]|\[))(?=[^_.:/-])/g;
  const loosened = new WeakSet();
  const loosen = () => document.querySelectorAll(NAMES).forEach((name) => {
    if (name.textContent.length < 12 || loosened.has(name)) return;
    loosened.add(name);
    // In a line of text a word goes to the next line as a whole, if it fits there.
    const words = name.closest("td, th, .md-nav") ? /\S{12,}/g : /\S{30,}/g;
    const texts = document.createTreeWalker(name, NodeFilter.SHOW_TEXT);
    for (let next = texts.nextNode(), text; (text = next); ) {
      next = texts.nextNode();
      const [first, ...rest] = text.data.replace(words, (word) => word.replace(END, "$1\u200b")).split("\u200b");
      if (rest.length) text.replaceWith(first, ...rest.flatMap((part) => [document.createElement("wbr"), part]));
    }
  });

  // The theme puts its boxes around the tables when the page is there: a moment later they are.
  const start = () => {
    link();
    turn();
    tell();
    quiet();
    document.querySelectorAll("article").forEach((article) => added.observe(article, { childList: true, subtree: true }));
    setTimeout(look, 50);
    setTimeout(loosen);
  };
  // A theme that loads pages without leaving the first one says so by this.
  if (window.document$) window.document$.subscribe(start);
  else if (document.readyState === "loading") document.addEventListener("DOMContentLoaded", start);
  else start();
  addEventListener("load", look);
  document.addEventListener("scroll", ({ target }) => target.matches?.(BOXES) && edge(target), { capture: true, passive: true });
})();
