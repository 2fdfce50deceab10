"""
A Chromium for the browser tests: Playwright's own, or the one of the system.

`python -m e2e.browser` makes sure that there is one, and that it starts.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

from playwright.sync_api import Error, Playwright, sync_playwright

_SYSTEM_NAMES = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")


def system_chromium() -> str | None:
    """Give the path of a Chromium that the system brings."""
    return next(filter(None, map(shutil.which, _SYSTEM_NAMES)), None)


def chromium_path(playwright: Playwright) -> str | None:
    """Give what to pass as `executable_path`. None where there is no browser at all."""
    own = playwright.chromium.executable_path
    return own if Path(own).exists() else system_chromium()


def chromium_arguments() -> list[str]:
    """Give what to pass as `args`: Chromium refuses to run as root inside its own sandbox."""
    return ["--no-sandbox"] if os.geteuid() == 0 else []


def main() -> int:
    if not _browser_is_there():
        subprocess.run([sys.executable, "-m", "playwright", "install", "chromium"], check=True)
    with sync_playwright() as playwright:
        path = chromium_path(playwright)
        try:
            browser = playwright.chromium.launch(executable_path=path, args=chromium_arguments())
        except Error as exc:
            sys.stderr.write(f"{exc.message}\n{_remedy()}\n")
            return 1
        sys.stdout.write(f"Chromium {browser.version}: {path}\n")
        browser.close()
    return 0


def _browser_is_there() -> bool:
    with sync_playwright() as playwright:
        return chromium_path(playwright) is not None


def _remedy() -> str:
    return (
        "Chromium is there but does not start. If libraries are missing, install them: "
        f"{sys.executable} -m playwright install-deps chromium (on Debian, apt-get install chromium does as well)."
    )


if __name__ == "__main__":
    raise SystemExit(main())
