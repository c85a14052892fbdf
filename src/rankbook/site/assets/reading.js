// What a theme leaves out for those who hear the page or have no mouse: names of dialogs, and a way into wide tables; links of headings, and places where long names may break.
(() => {
  "use strict";

  const isReachable = (box) => box.querySelector("a[href], button, input, summary");

  // A table without links that is wider than its box is moved by the arrow keys once it has the focus.
  const sizes = new ResizeObserver((entries) => entries.forEach(({ target }) => reach(target)));
  const reach = (box) => {
    const isWide = box.scrollWidth > box.clientWidth && !isReachable(box);
    Object.entries({ tabindex: "0", role: "group", "aria-label": "Table" }).forEach(([name, value]) =>
      isWide ? box.setAttribute(name, value) : box.removeAttribute(name));
  };

  const look = () => {
    document.querySelectorAll("[role=dialog]:not([aria-label], [aria-labelledby])").forEach((each) => each.setAttribute("aria-label", "Search"));
    document.querySelectorAll(".md-typeset__scrollwrap").forEach((each) => sizes.observe(each));
  };

  // Each heading leads to itself, for who wants its address: the link shows when it is pointed at.
  const link = () => document.querySelectorAll(".rankbook-page :is(h2, h3, h4)[id]:not(:has(> .headerlink))").forEach((heading) => {
    const made = document.createElement("a");
    made.className = "headerlink";
    made.href = `#${heading.id}`;
    made.textContent = "¶";
    heading.append(made);
  });

  // A long name breaks behind one of its words before it breaks anywhere.
  const NAMES = ":is(.rankbook-page, .rankbook-rollup, .rankbook-runs) :is(td, th) code, .md-nav--secondary .md-nav__link";
  const END = /([_.:/-]|[a-z0-9](?=[A-Z][a-z]))(?=[^_.:/-])/g;
  const loosened = new WeakSet();
  const loosen = () => document.querySelectorAll(NAMES).forEach((name) => {
    if (name.textContent.length < 12 || loosened.has(name)) return;
    loosened.add(name);
    const texts = document.createTreeWalker(name, NodeFilter.SHOW_TEXT);
    for (let next = texts.nextNode(), text; (text = next); ) {
      next = texts.nextNode();
      const [first, ...rest] = text.data.replace(END, "$1\u200b").split("\u200b");
      if (rest.length) text.replaceWith(first, ...rest.flatMap((part) => [document.createElement("wbr"), part]));
    }
  });

  // The theme puts its boxes around the tables when the page is there: a moment later they are.
  const start = () => {
    link();
    setTimeout(look, 50);
    setTimeout(loosen);
  };
  // A theme that loads pages without leaving the first one says so by this.
  if (window.document$) window.document$.subscribe(start);
  else if (document.readyState === "loading") document.addEventListener("DOMContentLoaded", start);
  else start();
  addEventListener("load", look);
})();
