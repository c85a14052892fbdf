// Search for tests, APIs, keywords, files, folders, owners and requirements: opened by T, Ctrl+K or the button in the header.
// It reads an index and the few shards that hold what a query begins; prose is left to the search of the site's engine.
(() => {
  "use strict";

  const own = document.currentScript?.src || document.querySelector('script[src*="assets/rankbook.js"]')?.src;
  if (!own) return;
  const FOLDER = new URL("rankbook-search/", own);
  const SITE = new URL("../", own);
  const MOST = 40; // results shown
  const SHARDS = 4; // files read for a query
  const LONGEST = 1000; // characters of a question: what is pasted may be a whole file
  const NEAR = 8; // names shown that are spelt almost as one that is not there
  const HINT = "Type a part of a name. test: api: keyword: file: owner: requirement: before it narrow the search.";
  const NOT_HERE = location.protocol === "file:"
    ? "This search reads files, which browsers do not allow on pages opened from disk. Serve the folder, say with python -m http.server, and open it from there."
    : "The index of this search could not be read.";

  // Names, taken apart as `site/search_words.py` does it.
  const words = (name) => name
    .normalize("NFC")
    .replace(/([a-z0-9])(?=[A-Z])|([A-Z])(?=[A-Z][a-z])/g, "$1$2 ")
    .toLowerCase()
    .replaceAll("ß", "ss")
    .replace(/[\u{10000}-\u{10ffff}]|[\ud800-\udfff]/gu, "\ufffd")
    .split(/[^0-9a-z\x80-\uffff]+/)
    .filter(Boolean);
  const joined = (name) => words(name).join("");
  const flat = (text) => text.normalize("NFC").toLowerCase().replaceAll("ß", "ss").replace(/[^0-9a-z\x80-\uffff]+/g, "");

  // What is read: the index once, each shard once.
  const read = async (file) => {
    const answer = await fetch(new URL(file, FOLDER));
    if (!answer.ok) throw new Error(`${file}: ${answer.status}`);
    return answer.json();
  };
  const known = new Map();
  const once = (file, make) => {
    if (!known.has(file)) known.set(file, read(file).then(make).catch((error) => {
      known.delete(file);
      throw error;
    }));
    return known.get(file);
  };
  const index = () => once("index.json", (found) => {
    const letters = Object.keys(found.kinds);
    const groups = [...new Set(Object.values(found.kinds).map(([, group]) => group))];
    return { ...found, order: Object.fromEntries(letters.map((letter, place) => [letter, place])), groups };
  });
  const fileOf = (start) => {
    let number = 0x811c9dc5;
    for (const byte of new TextEncoder().encode(start)) number = Math.imul(number ^ byte, 0x01000193) >>> 0;
    return `${start.replace(/[^0-9a-z]+/g, "_").slice(0, 24)}-${number.toString(16).padStart(8, "0")}.json`;
  };
  const shard = (start) => once(fileOf(start), (found) => Object.entries(found).flatMap(([place, rows]) =>
    rows.split("\n").map((row) => rowOf(place, row))));

  const rowOf = (place, row) => {
    const gap = row.indexOf(" ");
    const isFile = row[0] === "p";
    const whole = isFile ? place.slice(place.lastIndexOf("/") + 1) : row.slice(gap + 1);
    // A test that is found by its parameters has them in brackets: `test_sum[gloo|nccl|2]`.
    const [, name, held] = (row[0] === "t" && /^([^[]*)\[(.*?)\]?$/s.exec(whole)) || [null, whole];
    const plain = row[0] === "d" ? name.replace(/^.*\//s, "") : "wsrep".includes(row[0]) ? name : name.replaceAll("::", ".").replace(/^.*\.(?=.)/s, "");
    return { letter: row[0], number: Number(row.slice(1, gap < 0 ? 1 : gap)), name, place, plain, values: held?.split("|"), steps: null, text: null };
  };

  // A node id, and a line of a file, as they stand in what pytest prints and in commands.
  const NODE = /\S+\.\w+::[^\s[]+/;
  const SPOT = /(\S+\.\w+):(\d+)\b/;
  const DEFINED = /^\s*(?:async\s+)?(?:def|class)\s+(\w+)\s*(?:[(:].*)?$/s; // a line of a source
  const GPUS = /\b(\d+)\s*gpus?\b/i;

  // What a node id is about as the book lists it: without its parameters, and the source's for that of a page.
  const sourceOf = (text, page) => {
    const bare = NODE.exec(text)?.[0] ?? (/\]\.\w+$/.test(text) ? text : text.replace(/(\w)\[.*$/s, "$1")); // a file may have brackets in its name
    const [folder, behind] = page.split("{}");
    const end = bare.indexOf(behind.replace(/\.html$|\/$/, ".md"));
    if (end < 0) return bare;
    const path = bare.slice(0, end);
    const start = folder ? path.indexOf(folder) : -1;
    const place = start < 0 ? path.lastIndexOf("/") + 1 : start + folder.length;
    return path.slice(place) + bare.slice(end).replace(/^[^:]*/, "");
  };

  // What is asked: an optional kind before a colon, and pieces that a result must hold.
  const question = (typed, groups, kinds, page) => {
    const text = typed.slice(0, LONGEST).replace(DEFINED, "$1");
    const [, before, rest] = text.replace(/^\s*@?pytest\.mark\.(\w+).*$/s, "mark:$1").match(/^\s*([a-z ]+):(?!:)\s*(.*)$/is) || [null, "", text];
    const wanted = before.trim().toLowerCase();
    const group = wanted && groups.find((each) => each.toLowerCase() === wanted || (wanted === "need" && each === "Requirement"));
    const letter = wanted && !group && Object.keys(kinds).find((each) => kinds[each][0].toLowerCase() === wanted);
    const said = group || letter ? rest : text;
    const [, file, line] = (!NODE.test(said) && SPOT.exec(said)) || [];
    const asked = sourceOf(file || said, page);
    const parts = asked.split(/[\s./:#]+/);
    const pieces = parts.map(joined).filter(Boolean);
    const apart = asked.split(/[\s./:#-]+/).map(joined).filter(Boolean); // parameters stand between hyphens
    const need = /^\s*needs?\s+(.*)/is.exec(said)?.[1].split(/\s+/).map(joined).filter(Boolean);
    return { apart, need: need?.length && { whole: need.join(""), pieces: need }, steps: words(parts.findLast((part) => part.length > 2) ?? ""), group, letter, isPath: Boolean(file) || (asked.includes("/") && !asked.includes("::")), line: asked === file ? Number(line) : 0, whole: joined(asked), pieces };
  };

  // Beginnings of keys to look at, each with the number of shards that it may take.
  const ranges = ({ whole, pieces, need, isApart }) => {
    if (pieces.length < 2) return [[whole, SHARDS - 1]];
    const [outer, last] = pieces.slice(-2);
    const longest = pieces.reduce((best, each) => (each.length > best.length ? each : best));
    if (isApart) return [[`${outer}~${last}`, 1], [`${longest}~`, SHARDS]];
    const needs = need ? [[need.whole, 1]] : [];
    return [...needs, [`${last}-${outer}`, 1], [`${last}.${outer}`, 1], [`${last}~${outer}`, 1], [whole, 1], [longest, SHARDS]];
  };
  const startsFor = (starts, asked, files = SHARDS) => {
    const found = new Set();
    let isCut = false;
    for (const [text, most] of ranges(asked)) {
      const from = text.slice(0, 40);
      const range = starts.filter((start, place) => start <= `${from}\uffff` && (place + 1 === starts.length || starts[place + 1] > from));
      range.forEach((start, place) => {
        if (place < most && found.size < files) found.add(start);
        else if (!found.has(start)) isCut = true;
      });
    }
    return [[...found], isCut];
  };

  // The parameters that were asked for, of a test that is found by them.
  const holds = (value, piece) => (/^\d+$/.test(piece) ? value.split(/\D+/) : value).includes(piece); // 4 is no part of 14
  const valuesFor = (row, { whole, pieces }) => row.values.filter((value) => [whole, ...pieces].some((piece) => holds(flat(value), piece)));

  // How well a row fits: 0 its name (that of a file or a folder before others where a path is asked for, and before both the file of that path;
  // that of a test without the word, and that of a constant, behind others), 1 its beginning, 2 that of a part, 3 somewhere; -1 not at all.
  const fit = (row, asked) => {
    const { whole, pieces, isPath, need } = asked;
    if (need && row.letter === "s") return fit(row, need);
    row.text ??= flat(`${row.name} ${row.values?.join(" ") ?? ""} ${row.place.replace(/\?row=[^#]*/, "")}`);
    if (!row.text.includes(whole) && !pieces.every((piece) => row.text.includes(piece))) return -1;
    if (row.values) {
      const held = valuesFor(row, asked).map(flat);
      return held.some((value) => value === whole || pieces.includes(value)) ? 1 : held.length ? 3 : -1;
    }
    row.steps ??= words(row.plain);
    if (isPath && row.letter === "p") {
      const path = flat(row.place);
      if (path.endsWith(whole)) return path === whole ? -0.7 : -0.6;
    }
    const name = row.steps.join("");
    const last = pieces.length > 1 && !name.includes(whole) ? pieces.at(-1) : whole;
    if (name === last || (row.letter === "p" && joined(row.name.replace(/\.[^.]*$/, "")) === last)) return isPath && "pd".includes(row.letter) ? -0.5 : "kv".includes(row.letter) ? 0.6 : 0;
    // `store` is what `test_store`, `TestStore` and `test_store.py` are about.
    if ("tcp".includes(row.letter) && row.steps.filter((step, place) => !(step === "test" && (!place || place + 1 === row.steps.length))
      && !(row.letter === "p" && place + 1 === row.steps.length)).join("") === last) return 0.3;
    if (name.startsWith(last)) return 1;
    return row.steps.some((_, place) => place && row.steps.slice(place).join("").startsWith(last)) ? 2 : 3;
  };

  const find = async (text, chosen) => {
    const top = await index();
    const asked = question(text, top.groups, top.kinds, top.page);
    if (!asked.whole) return null;
    const [needed, isCut] = startsFor(top.starts, asked);
    const rows = await fitting(top, asked, chosen, needed);
    if (rows.length || asked.apart.length < 2) return { rows, pieces: [asked.whole, ...asked.pieces], isCut };
    // Parameters may be asked for without what stands between them, and before the name of the test.
    const apart = { ...asked, pieces: asked.apart, isApart: true };
    const [others, isMore] = startsFor(top.starts, apart, Math.max(1, SHARDS - 1 - needed.length));
    const found = await fitting(top, apart, chosen, others);
    // What is needed beside GPUs stands in no row with them.
    const gpus = !found.length && !asked.group && !asked.letter && GPUS.exec(text);
    if (gpus && text.trim() !== gpus[0]) return find(`${Number(gpus[1])} GPU${gpus[1] === "1" ? "" : "s"}`, chosen);
    return { rows: found, pieces: [asked.whole, ...asked.apart], isCut: isMore };
  };

  // What fits among the rows of some shards, the best first.
  const fitting = async ({ kinds, order }, asked, chosen, needed) => {
    const group = asked.group || chosen;
    const rows = (await Promise.all(needed.map(shard))).flat();
    const best = new Map();
    for (const row of rows) {
      if (asked.letter ? row.letter !== asked.letter : group && kinds[row.letter][1] !== group) continue;
      const rank = fit(row, asked);
      const key = rank === -1 ? "" : `${row.letter}${row.number} ${row.name}\n${row.place}`;
      if (rank === -1 || best.get(key)?.[0] <= rank) continue;
      // What is in many files comes before what is in few.
      best.set(key, [rank, order[row.letter], row.place.startsWith("/") ? -row.number : 0, row, row.name.length]);
    }
    const found = [...best.values()].sort((one, other) => one[0] - other[0] || one[1] - other[1] || one[2] - other[2] || one[4] - other[4]
      || (one[3].name < other[3].name ? -1 : one[3].name > other[3].name ? 1 : one[3].place < other[3].place ? -1 : 1));
    return found.map(([, , , row]) => {
      if (row.values) return { ...row, name: `${row.name}[${valuesFor(row, asked).join("|")}]` };
      return asked.line && row.letter === "p" ? { ...row, number: asked.line } : row; // who asks for a line of a file is led to it
    });
  };

  // How many letters must be put in, left out, changed, or exchanged with their neighbour to make one name of the other.
  const distance = (one, other) => {
    let [before, last] = [[], Array.from({ length: other.length + 1 }, (_, place) => place)];
    for (let row = 1; row <= one.length; row++) {
      const next = [row];
      for (let column = 1; column <= other.length; column++) {
        const isSame = one[row - 1] === other[column - 1];
        next[column] = Math.min(last[column] + 1, next[column - 1] + 1, last[column - 1] + !isSame);
        const isTurned = one[row - 1] === other[column - 2] && one[row - 2] === other[column - 1];
        if (isTurned) next[column] = Math.min(next[column], before[column - 2] + 1);
      }
      [before, last] = [last, next];
    }
    return last[other.length];
  };

  // Names that are spelt almost as what was asked for, and have a word that begins as one of its longest does.
  const near = async (text, chosen) => {
    const { starts, kinds, groups, page } = await index();
    const { steps, ...asked } = question(text, groups, kinds, page);
    const group = asked.group || chosen;
    const longest = steps.filter((step) => step.length > 2 && step !== "test").sort((one, other) => other.length - one.length).slice(0, SHARDS / 2);
    const needed = longest.flatMap((step) => startsFor(starts, { whole: step.slice(0, 3), pieces: [] })[0].slice(0, SHARDS / 2));
    const wanted = steps.join("");
    const most = Math.min(4, 1 + Math.floor(wanted.length / 5));
    // A run of words within a name counts too, behind whole names that are as near.
    const fault = (row) => {
      const steps = words(row.letter === "p" ? row.name.replace(/\.[^.]*$/, "") : row.plain);
      let least = Infinity;
      for (let start = 0; start < steps.length; start++) {
        for (let end = start + 1, run = steps[start]; ; run += steps[end++]) {
          if (run.length > wanted.length + most) break;
          const isWhole = !start && end === steps.length;
          if (run.length >= wanted.length - most && (isWhole || wanted.length > 4)) least = Math.min(least, distance(wanted, run) + (isWhole ? 0 : 0.5));
          if (end === steps.length) break;
        }
      }
      return least;
    };
    const rows = (await Promise.all([...new Set(needed)].map(shard))).flat().filter((row) =>
      !row.values && (asked.letter ? row.letter === asked.letter : !group || kinds[row.letter][1] === group));
    const byName = new Map(rows.map((row) => [`${row.letter}${row.number} ${row.name}\n${row.place}`, row]));
    const found = [...byName.values()].map((row) => [fault(row), row]).filter(([faults]) => faults <= most + 0.5);
    return found.sort((one, other) => one[0] - other[0] || one[1].name.length - other[1].name.length).slice(0, NEAR).map(([, row]) => row);
  };

  const addressOf = ({ page, root, kinds }, { place, number, letter, name }) => {
    const base = new URL(root ? `${root}/` : "", SITE);
    if (place.startsWith("/")) {
      const address = new URL(place.slice(1), base);
      if (kinds[letter][1] === "API" && address.hash) address.searchParams.set("row", name.split(".").at(-1));
      return address.href;
    }
    const path = place.split("/").map((step) => encodeURIComponent(step.replace(/[\ud800-\udfff]/gu, "\ufffd"))).join("/");
    return new URL(page.replace("{}", () => path) + (number ? `#L${number}` : ""), base).href;
  };

  // A name with what was asked for marked, letters and digits compared alone: `allred` marks `all_red`.
  const marked = (name, pieces) => {
    const places = [...name].flatMap((letter, place) => [...flat(letter)].map((plain) => [plain, place]));
    const plain = places.map(([letter]) => letter).join("");
    const hits = new Set();
    for (const piece of pieces) {
      const at = plain.lastIndexOf(piece);
      if (at >= 0) for (let place = places[at][1]; place <= places[at + piece.length - 1]?.[1]; place++) hits.add(place);
      if (at >= 0 && piece === pieces[0]) break;
    }
    const parts = [];
    [...name].forEach((letter, place) => {
      const isHit = hits.has(place);
      if (parts.at(-1)?.[1] === isHit) parts.at(-1)[0] += letter;
      else parts.push([letter, isHit]);
    });
    return parts.flatMap(([text, isHit]) => (isHit ? [element("mark", {}, ...breaking(text))] : breaking(text)));
  };

  // A name or a path that may break where its words end.
  const breaking = (name) => name.split(/(?<=[/_.:])(?![/_.:])/).flatMap((part, place) => (place ? [document.createElement("wbr"), part] : [part]));

  const element = (tag, values = {}, ...children) => {
    const made = document.createElement(tag);
    for (const [name, value] of Object.entries(values)) made.setAttribute(name, value);
    made.append(...children);
    return made;
  };
  const plural = (count, one) => `${count.toLocaleString("en")} ${one}${count === 1 ? "" : "s"}`;

  // The dialog: a box whose list is steered from the box (the pattern "combobox" of ARIA).
  const input = element("input", {
    type: "text", role: "combobox", "aria-label": "Find a test, an API, a keyword, a file or an owner", "aria-controls": "rankbook-found",
    "aria-expanded": "false", "aria-autocomplete": "list", autocomplete: "off", autocapitalize: "off", spellcheck: "false",
    placeholder: "Test, API, keyword, file, owner …", enterkeyhint: "go",
  });
  const status = element("p", { role: "status", class: "rankbook-search__status" }, HINT);
  const list = element("div", { role: "listbox", id: "rankbook-found", "aria-label": "Results", class: "rankbook-search__list", hidden: "" });
  const chips = element("div", { role: "group", "aria-label": "Kinds of result", class: "rankbook-search__chips" });
  const close = element("button", { type: "button", "aria-label": "Close", class: "rankbook-search__close" }, "✕");
  const dialog = element("dialog", { class: "rankbook-search", lang: "en", dir: "ltr", "aria-label": "Find in the book" },
    element("div", { class: "rankbook-search__head" }, input, close), chips, status, list);
  let chosen = ""; // kind
  let active = -1;
  let turn = 0;

  const activate = (place) => {
    const options = list.children;
    options[active]?.setAttribute("aria-selected", "false");
    active = options.length ? (place + options.length) % options.length : -1;
    options[active]?.setAttribute("aria-selected", "true");
    options[active]?.scrollIntoView({ block: "nearest" });
    if (active < 0) input.removeAttribute("aria-activedescendant");
    else input.setAttribute("aria-activedescendant", options[active].id);
  };

  const linkTo = (top, row, pieces, values = {}) => {
    const kind = top.kinds[row.letter][0];
    const isPage = row.place.startsWith("/");
    const files = row.number ? plural(row.number, "file") : "";
    const where = isPage ? (files && row.letter !== "d" ? `in ${files}` : files) : row.number ? `${row.place}:${row.number}` : row.place;
    return element("a", { ...values, href: addressOf(top, row) },
      element("span", { class: "rankbook-search__kind" }, kind), " ",
      element("code", {}, ...marked(row.name, pieces)), " ",
      element("span", { class: "rankbook-search__where" }, ...breaking(where)));
  };

  const option = (top, row, place, pieces) =>
    linkTo(top, row, pieces, { role: "option", id: `rankbook-found-${place}`, "aria-selected": "false", tabindex: "-1" });

  const show = (options, said, query = input.value) => {
    list.replaceChildren(...options);
    list.hidden = !options.length;
    list.scrollTop = 0;
    input.setAttribute("aria-expanded", String(options.length > 0));
    active = -1;
    activate(0);
    status.textContent = said;
    status.dataset.query = query; // what the list answers
  };

  const search = async () => {
    const mine = ++turn;
    try {
      const [top, found] = await Promise.all([index(), find(input.value, chosen)]);
      if (mine !== turn) return;
      if (!found) show([], HINT);
      else if (!found.rows.length) {
        const almost = await near(input.value, chosen);
        if (mine !== turn) return;
        show(almost.map((row, place) => option(top, row, place, [])), almost.length
          ? "Nothing found. Spelt almost so:"
          : `Nothing found. A name is found by the beginning of any of its words${chosen ? `; only ${chosen} is searched` : ""}.`);
      }
      else {
        const count = found.rows.length;
        const more = count > MOST ? `, the first ${MOST} shown` : "";
        show(found.rows.slice(0, MOST).map((row, place) => option(top, row, place, found.pieces)),
          `${plural(count, "result")}${more}${found.isCut ? "; there are more, go on typing" : ""}`);
      }
    } catch {
      if (mine === turn) show([], NOT_HERE);
    }
  };

  const choose = (group) => {
    chosen = chosen === group ? "" : group;
    for (const chip of chips.children) chip.setAttribute("aria-pressed", String(chip.textContent === chosen));
    search();
  };
  const fillChips = ({ groups }) => {
    if (chips.firstChild) return;
    for (const group of groups) {
      const chip = element("button", { type: "button", "aria-pressed": "false" }, group);
      chip.addEventListener("click", () => choose(group));
      chips.append(chip);
    }
  };

  const open = (query = "") => {
    if (dialog.open) return;
    if (!dialog.isConnected) document.body.append(dialog);
    dialog.showModal();
    if (query) input.value = query;
    input.focus();
    input.select();
    index().then(fillChips, () => show([], NOT_HERE));
    if (query) search();
  };

  const moves = { ArrowDown: () => active + 1, ArrowUp: () => active - 1, PageDown: () => Math.min(active + 8, list.children.length - 1), PageUp: () => Math.max(active - 8, 0) };
  input.addEventListener("input", search);
  input.addEventListener("keydown", (event) => {
    if (event.isComposing) return;
    if (moves[event.key] && list.children.length) {
      event.preventDefault();
      activate(moves[event.key]());
    } else if (event.key === "Enter") {
      event.preventDefault();
      const link = list.children[active];
      if (!link) return;
      if (event.ctrlKey || event.metaKey) window.open(link.href, "_blank", "noopener");
      else link.click();
    }
  });
  // The keys of the engine stay quiet while the dialog is open.
  dialog.addEventListener("keydown", (event) => event.stopPropagation());
  dialog.addEventListener("click", (event) => {
    if (event.target === dialog) dialog.close();
  });
  list.addEventListener("click", (event) => {
    // Material takes a link to where a language's pages begin for a choice of that language.
    if (document.querySelector(".md-select a[hreflang]")) event.stopPropagation();
    if (!event.ctrlKey && !event.metaKey && !event.shiftKey && event.target.closest("a")) dialog.close();
  });
  close.addEventListener("click", () => dialog.close());

  // Seen from the page, a key that is pressed in a field of a web component, such as the search of Zensical, comes from that component.
  const isTyping = (event) =>
    event.composedPath()[0].closest?.("input, textarea, select, [contenteditable]:not([contenteditable=false])");
  // Zensical opens its own search by Ctrl+K.
  const isTaken = /^zensical/i.test(document.querySelector("meta[name=generator]")?.content ?? "");
  document.addEventListener("keydown", (event) => {
    if (event.defaultPrevented || event.altKey || event.isComposing) return;
    const withControl = event.ctrlKey || event.metaKey;
    const isK = withControl && !event.shiftKey && event.key.toLowerCase() === "k" && !isTaken;
    const isT = !withControl && event.key === "t" && !isTyping(event) && !document.querySelector("dialog[open]");
    if (!isK && !isT) return;
    event.preventDefault();
    open();
  });

  // Who asks the search of Material, which knows the prose alone, is told of this one: by the first entry of its results.
  const bridge = () => {
    const theirs = document.querySelector("input.md-search__input");
    const results = document.querySelector(".md-search-result");
    if (!theirs || !results) return;
    const text = element("span", { lang: "en", dir: "ltr", "data-md-score": "0" }); // Enter takes the entry with the highest score
    const link = element("a", { href: "#__search", class: "rankbook-search-bridge", hidden: "" }, text);
    // With what it finds: that the prose has no match is no news then, and the style sheet leaves it out.
    const tell = async () => {
      const query = theirs.value.trim();
      const said = `Find “${query}” among tests, APIs, keywords and owners`;
      link.hidden = !query;
      text.textContent = said;
      delete link.dataset.found;
      const found = query ? await find(query, "").catch(() => null) : null;
      if (!found?.rows.length || query !== theirs.value.trim()) return;
      link.dataset.found = found.rows.length;
      text.textContent = `${said}: ${found.isCut ? "more than " : ""}${plural(found.rows.length, "result")}`;
    };
    theirs.addEventListener("input", tell);
    theirs.addEventListener("focus", tell);
    link.addEventListener("click", (event) => {
      event.preventDefault();
      const toggle = document.querySelector("[data-md-toggle=search]");
      if (toggle?.checked) toggle.click();
      open(theirs.value.trim());
    });
    results.prepend(link);
  };

  // A part of an address as it is meant; one that spells nothing stays as it is.
  const spelt = (part) => {
    try {
      return decodeURIComponent(part);
    } catch {
      return part;
    }
  };

  // Who follows an old link is shown what the book has by that name: a source that was moved has another address.
  const lost = async () => {
    const title = document.querySelector("article h1, [role=main] h1");
    if (!/^404\b/.test(title?.textContent.trim() ?? "") || document.querySelector(".rankbook-lost")) return;
    const steps = location.pathname.replace(/\.html$|\/$|\/index\.html$/, "").split("/").map(spelt);
    const name = steps.at(-1).replace(/_(docs|kw)$/, "");
    const found = name ? await Promise.all([index(), find(name, "")]).catch(() => null) : null;
    if (!found) return;
    const [top, answer] = found;
    const rows = answer?.rows ?? [];
    const said = rows.length ? "Nothing stands at this address. What the book knows by its name:" : "Nothing stands at this address, and the book knows nothing by its name.";
    const more = element("button", { type: "button", class: "md-button" }, "Find it by another name");
    more.addEventListener("click", () => open(name));
    title.after(element("div", { class: "rankbook-lost", lang: "en", dir: "ltr" }, element("p", {}, said),
      ...(rows.length ? [element("ul", {}, ...rows.slice(0, 8).map((row) => element("li", {}, linkTo(top, row, answer.pieces))))] : []), more));
  };

  // An address may name a row of the table below its heading, which has no address of its own.
  const arrive = () => {
    const name = new URLSearchParams(location.search).get("row");
    let block = name && document.getElementById(spelt(location.hash.slice(1)))?.nextElementSibling;
    for (; block && !/^H[1-6]$/.test(block.tagName); block = block.nextElementSibling) {
      const row = [...block.querySelectorAll("tbody tr")].find((each) => each.cells[0].textContent.trim() === name);
      if (!row) continue;
      row.classList.add("rankbook-found");
      row.scrollIntoView({ block: "center" });
      return;
    }
  };

  const start = () => {
    bridge();
    lost();
    // A theme that loads pages without leaving the first one says so by this.
    if (window.document$) window.document$.subscribe(() => setTimeout(arrive));
    else setTimeout(arrive);
    const icon = document.createElementNS("http://www.w3.org/2000/svg", "svg");
    icon.setAttribute("viewBox", "0 0 24 24");
    icon.setAttribute("aria-hidden", "true");
    const path = document.createElementNS(icon.namespaceURI, "path");
    path.setAttribute("d", "M4 5h10v2H4zm0 5h6v2H4zm0 5h5v2H4zm11.5-5a4.5 4.5 0 1 0 2.3 8.4l2.5 2.5 1.4-1.4-2.5-2.5a4.5 4.5 0 0 0-3.7-7zm0 2a2.5 2.5 0 1 1 0 5 2.5 2.5 0 0 1 0-5z");
    icon.append(path);
    const header = document.querySelector(".md-header__inner");
    const button = element("button", {
      type: "button", class: header ? "md-header__button md-icon rankbook-search-button" : "rankbook-search-button rankbook-search-button--fixed",
      lang: "en", "aria-label": "Find a test, an API or an owner", title: "Find a test, an API or an owner (T)", "aria-haspopup": "dialog",
    }, icon);
    button.append(element("span", { class: "rankbook-search-button__text" }, "Find a test ", element("kbd", {}, "T")));
    button.addEventListener("click", () => open());
    if (!header) {
      document.body.append(button);
      return;
    }
    header.insertBefore(button, header.querySelector(":scope > label[for=__search], :scope > .md-search, :scope > .md-header__source"));
    // Where letters are so large that it has no room, it gives way: the search opens by its key, and from that of the theme.
    const fit = () => {
      button.style.display = "";
      if (header.scrollWidth > header.clientWidth) button.style.display = "none";
    };
    let later = 0;
    new ResizeObserver(() => {
      fit();
      clearTimeout(later);
      later = setTimeout(fit, 500); // the theme takes a moment to lay its header out anew
    }).observe(header);
  };
  if (document.readyState === "loading") document.addEventListener("DOMContentLoaded", start);
  else start();
})();
