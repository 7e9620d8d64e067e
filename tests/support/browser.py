"""A real Chromium, for pages that the suite writes."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from contextlib import contextmanager

import pytest
from playwright.sync_api import Browser, Dialog, Page, sync_playwright

CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
needs_chromium = pytest.mark.skipif(CHROMIUM is None, reason="no Chromium is installed (Debian: chromium)")
_OPTIONS = ["--no-sandbox", "--disable-gpu", "--disable-quic", "--disable-background-networking"]


@contextmanager
def chromium() -> Iterator[Browser]:
    """A browser without a window."""
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=CHROMIUM, args=_OPTIONS)
        try:
            yield browser
        finally:
            browser.close()


@contextmanager
def opened(browser: Browser, url: str, width: int = 1280, scheme: str = "light") -> Iterator[Page]:
    """A page that says it is ready; anything on its console, any dialog and any request fails the test.

    Args:
        browser: the browser.
        url: the page's address.
        width: of the window, in pixels.
        scheme: `light` or `dark`.
    """
    dark = scheme == "dark"
    context = browser.new_context(
        viewport={"width": width, "height": 900}, color_scheme="dark" if dark else "light", offline=True
    )
    page = context.new_page()
    faults: list[str] = []

    def refuse(dialog: Dialog) -> None:
        faults.append(dialog.message)
        dialog.dismiss()

    page.on("console", lambda message: faults.append(message.text))
    page.on("pageerror", lambda error: faults.append(str(error)))
    page.on("dialog", refuse)
    page.on("request", lambda request: faults.append(request.url) if request.url != url else None)
    try:
        page.goto(url)
        page.wait_for_selector("html[data-ready=yes]", timeout=120_000)
        yield page
        assert not faults
    finally:
        context.close()
