// A theme that loads pages without leaving the first one may come to a generated page from one of its own, which has not loaded the parts yet.
(() => {
  "use strict";

  const place = document.currentScript?.src;
  if (!place || window.rb || !document.getElementById("__config")?.textContent.includes('"navigation.instant')) return;
  window.rb = () => {}; // until they are here, the plain list of contents stays
  const script = document.createElement("script");
  script.src = new URL("rankbook-shell.js", place).href;
  document.head.append(script);
})();
