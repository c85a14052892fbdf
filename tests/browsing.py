"""A browser for the tests of the site, and a server for its folder."""

from __future__ import annotations

import functools
import http
import http.server
import os
import shutil
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

PHONE, TABLET, DESKTOP = {"width": 390, "height": 844}, {"width": 760, "height": 1000}, {"width": 1280, "height": 900}
CHROMIUM = ("chromium-headless-shell", "chromium", "chromium-browser", "google-chrome")
"""Names of its programs; the first is the same engine without the windows around it, and takes a fifth less time."""
ARGUMENTS = ["--no-sandbox", "--disable-gpu", "--disable-background-networking"]
OPEN: list[Any] = []
"""The contexts of the pages that tests look at."""


def unavailable(reason: str) -> None:
    """Skip, or fail where a browser is required."""
    if os.environ.get("RANKBOOK_REQUIRE_BROWSER"):
        pytest.fail(f"{reason}, and RANKBOOK_REQUIRE_BROWSER is set")
    pytest.skip(reason)


class Quiet(http.server.SimpleHTTPRequestHandler):
    def log_message(self, *arguments: object) -> None:
        """Say nothing: a request is no news here."""

    def send_error(self, code: int, *arguments: object, **more: object) -> None:
        """Show the site's own page where nothing is, as the servers of forges do."""
        own = Path(self.directory, "404.html")
        if code != http.HTTPStatus.NOT_FOUND or not own.is_file():
            return super().send_error(code, *arguments, **more)
        data = own.read_bytes()
        self.send_response(code)
        self.send_header("Content-Type", "text/html")
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(data)
        return None


@contextmanager
def served(site: Path, port: int = 0) -> Iterator[str]:
    """Serve a folder, by default at any free port; give its address."""
    with http.server.ThreadingHTTPServer(("127.0.0.1", port), functools.partial(Quiet, directory=os.fspath(site))) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        address = f"http://127.0.0.1:{server.server_address[1]}/"
        try:
            yield address
        finally:
            # What a page still loads when a test is over, Material's search in the background for example, would fail: it goes first.
            for context in OPEN:
                if any(page.url.startswith(address) for page in context.pages):
                    context.close()
            server.shutdown()


@contextmanager
def browser():
    """Start Chromium."""
    path = next(filter(None, map(shutil.which, CHROMIUM)), None)
    if path is None:
        unavailable("no Chromium on the PATH")
    try:
        from playwright.sync_api import sync_playwright
    except ImportError:
        unavailable("playwright is not installed")
    with sync_playwright() as playwright:
        started = playwright.chromium.launch(executable_path=path, args=ARGUMENTS)
        try:
            yield started
        finally:
            started.close()


@contextmanager
def visits(chromium) -> Iterator[Callable[..., Any]]:
    """Give a function that opens an empty page, each in a context of its own, with the options of one; no script of a page may fail."""
    contexts: list[Any] = []
    errors: list[str] = []

    def opened(**options):
        context = chromium.new_context(**{"viewport": DESKTOP, **options})
        contexts.append(context)
        OPEN.append(context)
        page = context.new_page()
        page.set_default_timeout(15_000)
        page.on("pageerror", lambda error: errors.append(error.stack or str(error)))
        return page

    try:
        yield opened
    finally:
        for context in contexts:
            context.close()
            OPEN.remove(context)
    assert errors == []
