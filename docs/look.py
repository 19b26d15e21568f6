"""Check the built pages as a reader sees them: ``python docs/look.py [FOLDER]``.

FOLDER holds the pages that Sphinx built, by default build/docs. The script finds links
inside the site that lead nowhere. If the package playwright and a browser are
installed, it opens every page on a wide and on a narrow screen. It then finds pages,
tables and blocks of code that are wider than the screen, and pages of the guide that
are too long. Pictures of the guide's pages, light and dark, go to the folder ``look``
beside FOLDER. Without a browser it says so. ``--no-pictures`` only measures.
"""

from __future__ import annotations

import os
import shutil
import sys
from collections.abc import Iterator
from html.parser import HTMLParser
from pathlib import Path
from typing import Any
from urllib.parse import unquote, urlsplit

ROOT = Path(__file__).resolve().parents[1]
#: Widths and heights of the screens: a notebook's and a telephone's.
SCREENS = {"wide": (1280, 900), "narrow": (390, 844)}
#: A page has at most six screens of a notebook, and half a screen for the fonts of
#: other machines.
LONGEST = 6.5
#: The index of all names may be longer.
LONG = {"genindex.html"}
#: Return what is too wide, and the height of the text. On the wide screen a table or a
#: block of code may not even need a scroll bar.
MEASURE = """wide => {
  const room = document.documentElement.clientWidth, found = [];
  const page = document.documentElement.scrollWidth;
  if (page > room + 1) found.push(`the page is ${page} pixels wide`);
  for (const item of document.querySelectorAll("article :is(table, pre, img)")) {
    if (!item.offsetParent) continue;
    let box = item;
    while (box && box.tagName != "ARTICLE"
           && !["auto", "scroll"].includes(getComputedStyle(box).overflowX))
      box = box.parentElement;
    const scrolls = box && box.tagName != "ARTICLE";
    const over = scrolls ? wide && box.scrollWidth > box.clientWidth + 1
                         : item.getBoundingClientRect().right > room + 1;
    const text = item.textContent.trim().replace(/\\s+/g, " ").slice(0, 50);
    if (over) found.push(`a ${item.tagName.toLowerCase()} is too wide: ${text}`);
  }
  return [found, document.querySelector("article")?.offsetHeight ?? 0];
}"""


class Page(HTMLParser):
    """The links of a page and the names that links may lead to."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.links: list[str] = []
        self.names: set[str] = set()
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        for key, value in attrs:
            if key in ("href", "src") and value:
                self.links.append(value)
            elif key in ("id", "name") and value:
                self.names.add(value)


def dead_links(site: Path) -> list[str]:
    """Return the links between the pages of a site that lead nowhere."""
    pages = {
        path: Page(path.read_text("utf-8"))
        for path in sorted(site.rglob("*.html"))
        if "_static" not in path.parts
    }
    found = []
    for path, page in pages.items():
        for link in page.links:
            parts = urlsplit(link)
            if parts.scheme or parts.netloc:
                continue
            target = path
            if parts.path:
                target = Path(os.path.normpath(path.parent / unquote(parts.path)))
            name = unquote(parts.fragment)
            known = pages[target].names if target in pages else None
            if not target.exists() or (
                name and known is not None and name not in known
            ):
                found.append(f"{path.relative_to(site)}: dead link {link}")
    return found


def browser(play: Any) -> Any:
    """Start an installed browser, or the one that playwright brought."""
    names = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")
    program = next(filter(None, map(shutil.which, names)), None)
    # As root, as in a container, Chromium refuses to start in its sandbox.
    root = getattr(os, "geteuid", lambda: 1)() == 0
    arguments = ["--disable-dev-shm-usage", *["--no-sandbox"] * root]
    return play.chromium.launch(executable_path=program, args=arguments)


def look(site: Path, pictures: Path | None, longest: float = LONGEST) -> Iterator[str]:
    """Yield what is wrong with the looks of the pages of a site.

    Raises
    ------
    RuntimeError
        There is no browser.
    """
    try:
        from playwright.sync_api import Error, sync_playwright
    except ImportError as error:
        raise RuntimeError("the package playwright is not installed") from error
    with sync_playwright() as play:
        try:
            program = browser(play)
        except Error as error:
            raise RuntimeError("no browser was found") from error
        tab = program.new_page()
        tab.set_default_timeout(300_000)  # a busy machine is no fault
        tab.route("http*://**", lambda route: route.abort())  # nothing from outside
        for path in sorted(site.rglob("*.html")):
            name = path.relative_to(site)
            if name.parts[0].startswith("_"):
                continue
            tab.goto(path.as_uri())
            for screen, (width, height) in SCREENS.items():
                tab.set_viewport_size({"width": width, "height": height})
                faults, length = tab.evaluate(MEASURE, screen == "wide")
                limited = screen == "wide" and name.parts[:-1] in ((), ("solvers",))
                if limited and str(name) not in LONG and length > longest * height:
                    faults.append(f"{length / height:.1f} screens long")
                yield from (f"{name}, {width} pixels: {fault}" for fault in faults)
                if pictures and not {"generated", "auto_examples"} & set(name.parts):
                    for scheme in ("light", "dark"):
                        tab.emulate_media(color_scheme=scheme)
                        file = pictures / name.with_suffix(f".{screen}-{scheme}.png")
                        tab.screenshot(path=file, full_page=True)
        program.close()


def main() -> None:
    """Print what is wrong with a site, and fail if anything is."""
    arguments = [a for a in sys.argv[1:] if a != "--no-pictures"]
    site = Path(*arguments).resolve() if arguments else ROOT / "build" / "docs"
    pictures = None if "--no-pictures" in sys.argv else site.parent / "look"
    faults = dead_links(site)
    try:
        faults += look(site, pictures)
    except RuntimeError as error:
        print(f"The pages were not opened: {error}.")
    else:
        if pictures:
            print(f"Pictures of the pages: {pictures}")
    print("\n".join(faults) or "No dead links, nothing too wide or too long.")
    sys.exit(bool(faults))


if __name__ == "__main__":
    main()
