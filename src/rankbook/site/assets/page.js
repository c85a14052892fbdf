// The page of a file: lines that a reader picks, permalinks to the forge, commands to copy. Without this script all of it can still be read.
(() => {
  "use strict";

  const FACTS = document.currentScript ? new URL("rankbook.json", document.currentScript.src).href : "";
  const OLD = /^#__codelineno-source-(\d+)$/;
  const LINES = /^#L(\d+)(?:-L?(\d+))?$/;
  const TYPED = /^\s*L?(\d+)\s*(?:[-–,:]\s*L?(\d+)\s*)?$/i;
  let facts = null;
  let first = 0;
  let picked = "";
  let shown = "";
  let asked = location.hash; // a theme that tells in the address which heading is in sight says so to nobody: what was asked for stays
  let lines = null; // those that are marked

  const element = (name, attributes, text) => {
    const made = document.createElement(name);
    Object.entries(attributes).forEach(([key, value]) => made.setAttribute(key, value));
    if (text) made.textContent = text;
    return made;
  };
  const line = (number) => document.getElementById(`L${number}`);

  // What happens is said to a screen reader, and shown for a moment at the foot of the window.
  const voice = () => {
    const place = document.getElementById("rankbook-said") || element("div", { id: "rankbook-said", role: "status", lang: "en", dir: "ltr" });
    if (!place.isConnected) document.body.append(place);
    return place;
  };

  const say = (text) => {
    const place = voice();
    place.textContent = "";
    requestAnimationFrame(() => (place.textContent = text));
    clearTimeout(say.timer);
    say.timer = setTimeout(() => (place.textContent = ""), 4000);
  };

  const copy = async (text) => {
    try {
      await navigator.clipboard.writeText(text);
    } catch {
      // Browsers give the clipboard to secure addresses alone; the older way works from a folder, too.
      const back = document.activeElement;
      const box = element("textarea", { readonly: "", class: "rankbook-clip", "aria-hidden": "true" });
      box.value = text;
      document.body.append(box);
      box.select();
      const done = document.execCommand("copy");
      box.remove();
      back?.focus?.({ preventScroll: true });
      if (!done) return say(`This browser does not let the page copy. The text is: ${text}`);
    }
    say(`Copied: ${text.length > 300 ? `${text.slice(0, 300)} …` : text}`);
  };

  // Lines

  const range = (hash) => {
    const found = LINES.exec(hash);
    if (!found) return null;
    const ends = [Number(found[1]), Number(found[2] || found[1])].sort((one, other) => one - other);
    return line(ends[0]) ? ends : null;
  };

  const written = ([low, high]) => (low === high ? `#L${low}` : `#L${low}-L${high}`);

  const mark = () => {
    document.querySelectorAll(".rankbook-picked").forEach((each) => each.classList.remove("rankbook-picked"));
    const ends = (lines = range(asked));
    for (let number = ends?.[0]; ends && number <= ends[1]; number++) {
      const each = line(number);
      if (!each) break;
      each.classList.add("rankbook-picked");
    }
    const box = document.querySelector(".rankbook-lines input");
    if (box && document.activeElement !== box) box.value = ends ? written(ends).replaceAll(/[#L]/g, "") : "";
    document.querySelectorAll(".rankbook-lines [data-link]").forEach((each) => (each.hidden = !ends));
    link(ends);
    return ends;
  };

  // The address changes without a jump: who clicks on a line is there already.
  const pick = (ends) => {
    const place = [scrollX, scrollY];
    picked = asked = written(ends);
    location.replace(picked);
    scrollTo(...place);
    mark();
    say(ends[0] === ends[1] ? `Line ${ends[0]}` : `Lines ${ends[0]} to ${ends[1]}`);
  };

  // A listing in a tab that is not open is shown when a link leads to it.
  const reveal = () => {
    const target = asked.startsWith("#rb-listing:") && document.getElementById(decodeURIComponent(asked.slice(1)));
    if (!target || target.getClientRects().length) return;
    for (let block = target.closest(".tabbed-block"); block; block = block.parentElement.closest(".tabbed-block")) {
      const place = [...block.parentElement.children].indexOf(block);
      block.closest(".tabbed-set").querySelectorAll(":scope > input")[place]?.click();
    }
    target.scrollIntoView();
  };

  const arrive = () => {
    if (picked && picked === asked) return;
    picked = "";
    reveal();
    const old = OLD.exec(asked);
    if (old && !document.getElementById(asked.slice(1)) && line(old[1])) {
      asked = `#L${old[1]}`;
      history.replaceState(history.state, "", asked);
      line(old[1]).scrollIntoView({ block: "center" });
    }
    // Where an engine has made the listing, its lines have names of that engine.
    const wanted = LINES.exec(asked);
    const theirs = wanted && !line(wanted[1]) && document.getElementById(`__codelineno-source-${wanted[1]}`);
    if (theirs) {
      asked = `#${theirs.id}`;
      location.replace(asked);
    }
    const ends = mark();
    if (ends && ends[0] !== ends[1]) line(ends[0]).scrollIntoView({ block: ends[1] - ends[0] > 20 ? "start" : "center" });
    first = ends ? ends[0] : 0;
  };

  // The address may be that of a page which is not here yet.
  const follow = () => {
    asked = location.hash;
    if (location.pathname === shown) arrive();
  };

  // The numbers are drawn by the style sheet: a click on one is a click on its line, left of the text or over what is moved under the number.
  const isNumber = (each, x) => {
    const drawn = getComputedStyle(each, "::before");
    if (drawn.content === "none") return false;
    const text = document.createRange();
    text.selectNodeContents(each);
    const start = text.getClientRects()[0];
    return !start || x < Math.max(start.left, each.closest("code").getBoundingClientRect().left + (parseFloat(drawn.width) || 0));
  };

  const clicked = (event) => {
    const each = event.target.closest?.("code [id^='L']");
    if (!each || !/^L\d+$/.test(each.id) || !isNumber(each, event.clientX)) return;
    const number = Number(each.id.slice(1));
    const start = event.shiftKey && first ? first : number;
    if (!event.shiftKey) first = number;
    getSelection()?.removeAllRanges();
    pick([Math.min(start, number), Math.max(start, number)]);
  };

  const bar = () => {
    const listing = line(1)?.closest("pre");
    const box = listing?.closest(".highlight") || listing;
    if (!box || box.previousElementSibling?.matches(".rankbook-lines")) return;
    const form = element("form", { class: "rankbook-lines" });
    const label = element("label", {}, "Lines ");
    const input = element("input", { type: "text", inputmode: "text", autocomplete: "off", placeholder: "12 or 3-9", size: "9" });
    label.append(input);
    const share = element("button", { type: "button", "data-link": "", hidden: "" }, "Copy link to the lines");
    form.append(label, share);
    form.addEventListener("submit", (event) => {
      event.preventDefault();
      const found = TYPED.exec(input.value);
      const ends = found && range(`#L${found[1]}-L${found[2] || found[1]}`);
      if (!ends) return say("There is no such line.");
      first = ends[0];
      pick(ends);
      line(ends[0]).scrollIntoView({ block: "center" });
    });
    share.addEventListener("click", () => copy(new URL(written(lines), location.href).href));
    box.before(form);
    // Themes that load pages without leaving the first one bring a button of their own.
    if (window.document$) return;
    const whole = element("button", { type: "button" }, "Copy the source");
    whole.addEventListener("click", () => copy(listing.querySelector("code").textContent));
    form.append(whole);
  };

  // The forge

  const ending = (ends) =>
    (ends[0] === ends[1] ? facts.line : facts.lines)
      .replaceAll("{first}", ends[0])
      .replaceAll("{last}", ends[1])
      .replaceAll("{after}", ends[1] + 1);

  const link = (ends) => {
    if (!facts?.commit) return;
    document.querySelectorAll("a.rankbook-permalink[data-commit]").forEach((each) => {
      if (facts.absent?.includes(each.dataset.commit)) each.closest("nav").hidden = true; // the forge has none
      if (facts.changed?.includes(each.dataset.commit)) return; // the commit has another file, or none
      each.href = each.dataset.commit.replace("{commit}", facts.commit) + (ends ? ending(ends) : "");
      each.title = "The file as it is in this book (y)";
      each.hidden = false;
    });
  };

  const learn = async () => {
    if (facts || !FACTS || !document.querySelector("a.rankbook-permalink[data-commit]")) return;
    try {
      const answer = await fetch(FACTS);
      facts = answer.ok ? await answer.json() : {};
    } catch {
      facts = {};
    }
    link(lines);
  };

  const pressed = (event) => {
    if (event.key !== "y" || event.ctrlKey || event.metaKey || event.altKey || event.defaultPrevented) return;
    const pressedIn = event.composedPath()[0]; // seen from the page, a field of a web component is that component
    if (pressedIn.closest?.("input, textarea, select, [contenteditable]") || document.querySelector("dialog[open]")) return;
    const permalink = document.querySelector("a.rankbook-permalink[data-commit]:not([hidden])");
    if (permalink) location.assign(permalink.href);
  };

  // Commands

  const button = (command, what) =>
    element("button", { type: "button", class: "rankbook-copy", "aria-label": what, title: command, "data-copy": command });

  // Below the first test of a table an empty title stands for what would be the same but for the test's name: `site/lean.py` leaves it out.
  const complete = (table) => {
    let start = "";
    let ended = "";
    table.querySelectorAll("a[title]").forEach((each) => {
      if (each.matches(".rankbook-run")) ended = each.title ||= ended;
      else if (!each.title && start) each.title = start + each.textContent;
      else if (each.title.endsWith(each.textContent)) start = each.title.slice(0, -each.textContent.length);
    });
  };

  // A badge says how something ended; who comes to it from link to link hears of what, too: its word first, then the test of the row that it
  // leads to, or what that is a variant of.
  const name = (badge) => {
    const run = document.getElementById(badge.hash.slice(1))?.querySelector("td code")?.textContent ?? "";
    const row = badge.closest("td")?.querySelector("code")?.textContent;
    const [owner] = /^(?:[^[]*::)?/.exec(run);
    const what = badge.closest("h1") ? "this page" : row && !row.includes("::") ? owner + row : row || run;
    if (what) badge.setAttribute("aria-label", `${badge.textContent}: ${what}`);
  };

  const commands = () => {
    document.querySelectorAll(".rankbook-page table").forEach(complete);
    document.querySelectorAll("a.rankbook-run:not([aria-label])").forEach(name);
    document.querySelectorAll("a[title^='pytest ']").forEach((each) => {
      each.after(button(each.title, `Copy the command that runs ${each.textContent} alone`));
      each.removeAttribute("title");
    });
    const folder = document.querySelector(".rankbook-page[data-folder]")?.dataset.folder;
    document.querySelectorAll("li > code:last-child").forEach((each) => {
      const isLast = !each.nextSibling?.textContent.trim();
      // What a docstring shows as code is no command of ours: those stand behind one of these words.
      const isOurs = !each.previousElementSibling && /^\s*(?:from its source|as a script|from this page)\b/.test(each.parentElement.textContent);
      if (!isLast || !isOurs || !/^(?:pytest|python) /.test(each.textContent)) return;
      // The page names itself for its own folder; here it is named for where all other commands are run.
      const command = folder ? each.textContent.replace(/^pytest --doctest-glob='\*\.md' (?:\$?')?/, (start) => start + folder) : each.textContent;
      if (command !== each.textContent) {
        each.textContent = command;
        each.previousSibling.textContent = each.previousSibling.textContent.replace(", in its folder", "");
      }
      each.after(button(command, "Copy this command"));
    });
  };

  const start = () => {
    picked = "";
    shown = location.pathname;
    voice();
    commands();
    bar();
    arrive();
    learn();
  };

  document.addEventListener("click", (event) => {
    const command = event.target.closest?.("[data-copy]")?.dataset.copy;
    if (command) copy(command);
    else clicked(event);
  });
  // With Shift a browser would select the text between two clicks.
  document.addEventListener("mousedown", (event) => {
    if (event.shiftKey && event.target.closest?.("code [id^='L']")) event.preventDefault();
  });
  document.addEventListener("keydown", pressed);
  addEventListener("hashchange", follow);
  // A theme that loads pages without leaving the first one follows links by itself, those to lines as well, and says so by these.
  window.location$?.subscribe(follow);
  if (window.document$) window.document$.subscribe(start);
  else if (document.readyState === "loading") document.addEventListener("DOMContentLoaded", start);
  else start();
})();
