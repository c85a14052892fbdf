// Times of runs: "two days ago", with the date on hover. Without this script the date itself stands there.
(() => {
  "use strict";

  const UNITS = [
    ["year", 31557600],
    ["month", 2629800],
    ["day", 86400],
    ["hour", 3600],
    ["minute", 60],
  ];
  // As all around it; "yesterday" is the day before this one, and may be less than 24 hours ago or nearly 48.
  const words = new Intl.RelativeTimeFormat("en");

  const ago = (seconds) => {
    const [unit, length] = UNITS.find(([, length]) => Math.abs(seconds) >= length) || [];
    if (!unit) return "this minute";
    return words.format(-Math.trunc(seconds / length), unit);
  };

  const tell = (time) => {
    const moment = Date.parse(time.dateTime);
    if (Number.isNaN(moment) || time.title) return;
    time.title = time.textContent;
    time.textContent = ago((Date.now() - moment) / 1000);
  };

  const start = () => document.querySelectorAll(":is(.rankbook-head, .rankbook-listing, .rankbook-runs) time, .rankbook-rollup time[datetime*=T]").forEach(tell);
  // A theme that loads pages without leaving the first one says so by this.
  if (window.document$) window.document$.subscribe(start);
  else if (document.readyState === "loading") document.addEventListener("DOMContentLoaded", start);
  else start();

  // On paper the date itself is worth more.
  window.addEventListener("beforeprint", () => {
    document.querySelectorAll("time[title]").forEach((time) => {
      time.textContent = time.title;
      time.removeAttribute("title");
    });
  });
  window.addEventListener("afterprint", start);
})();
