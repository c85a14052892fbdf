"""What browsers talk to while somebody works on a book."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from html import escape
from typing import Any

from rankbook.serving.live import Live

_KEEPER = """<script>
(() => {
  const key = "rankbook-open:" + location.pathname;
  const all = () => [...document.querySelectorAll("details")];
  try {
    const open = JSON.parse(sessionStorage.getItem(key) || "[]");
    sessionStorage.removeItem(key);
    all().forEach((element, number) => { if (open.includes(number)) element.open = true; });
    addEventListener("pagehide", () => {
      const now = all().flatMap((element, number) => (element.open ? [number] : []));
      sessionStorage.setItem(key, JSON.stringify(now));
    });
  } catch (error) {
    console.debug(error);
  }
})();
</script>"""
"""Opens again, when a page is loaded anew, what a reader has opened on it."""
_RETRY = """<script>
setInterval(() => fetch(location.href).then((answer) => answer.ok && location.reload(), () => {}), 1000);
</script>"""
"""Shows a page as soon as it is there: one that is not there is no part of what the server tells browsers to load anew."""
_NOTE = (
    '<div class="rankbook-mistake" role="alert" style="position:fixed;z-index:99;left:0;right:0;bottom:0;max-height:40vh;overflow:auto;'
    "padding:.8em 1em;border-top:4px solid #c62828;background:#fff;color:#7f0000;font:14px/1.4 ui-monospace,monospace;"
    'white-space:pre-wrap;overflow-wrap:anywhere">{}</div>'
)
_StartResponse = Callable[..., Any]
_App = Callable[[dict[str, Any], _StartResponse], Iterable[bytes]]


class Window:
    """What browsers talk to: the server's own application, with each page brought up to date first.

    Args:
        app: the server's.
        live: the book.
        mount: address of the site below that of the server, with a slash at its end.
    """

    def __init__(self, app: _App, live: Live, mount: str) -> None:
        self._app = app
        self._live = live
        self._mount = mount

    def __call__(self, environ: dict[str, Any], start_response: _StartResponse) -> Iterable[bytes]:
        """Answer a request, as WSGI wants it."""
        path = environ["PATH_INFO"].encode("latin-1").decode("utf-8", "ignore")
        if path.startswith("/livereload/"):
            return self._app(environ, start_response)
        self._ask(path)
        told: list[tuple[str, list[tuple[str, str]]]] = []
        body = self._app(environ, lambda status, headers, *_: told.append((status, headers)))
        status, headers = told[-1]
        if any(name.lower() == "content-type" and value.startswith("text/html") for name, value in headers):
            data = self._noted(b"".join(body), again=status.startswith("404"))
            getattr(body, "close", lambda: None)()
            headers = [(name, value) for name, value in headers if name.lower() != "content-length"]
            headers.append(("Content-Length", str(len(data))))
            body = [data]
        start_response(status, headers)
        return body

    def _ask(self, path: str) -> None:
        if path.startswith(self._mount):
            file = path[len(self._mount) :]
            self._live.ask(f"{file}index.html" if path.endswith("/") else file)

    def _noted(self, page: bytes, *, again: bool) -> bytes:
        mistakes = list(self._live.mistakes.values())
        note = _NOTE.format("\n\n".join(map(escape, mistakes))) if mistakes else ""
        start, end, rest = page.rpartition(b"</body>")
        return b"".join((start or rest, note.encode(), (_RETRY if again else _KEEPER).encode(), end, rest if start else b""))
