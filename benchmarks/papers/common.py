"""Tables and pictures, for the scripts of this folder."""

from __future__ import annotations

import argparse
import json
import sys
import time
from pathlib import Path

from PIL import Image

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from datasets import ROOT
from harness import collapsed

DOCS = ROOT / "docs" / "papers"


def arguments(parser: argparse.ArgumentParser, *free: str) -> argparse.Namespace:
    """Parse the command line, and choose the folder that the page goes to.

    Only the published run writes over the published page: the run whose arguments,
    apart from those called `free`, are the defaults.
    """
    parser.add_argument(
        "--output", type=Path, metavar="FOLDER",
        help="where to write page, picture and results (default: docs/papers for the "
        "published run, build/papers for any other)",
    )  # fmt: skip
    args = parser.parse_args()
    if args.output is None:
        changed = {k for k, v in vars(args).items() if v != parser.get_default(k)}
        args.output = ROOT / "build" / "papers" if changed - {*free} else DOCS
    return args


class Report:
    """Collects results; writes <name>.{json,md,png} into a folder.

    The page begins with `conclusion`, to be set before it is written, and the picture.
    """

    def __init__(self, name: str, title: str, folder: Path = DOCS) -> None:
        self.name, self.title, self.conclusion = name, title, ""
        self.folder, self.lines, self.results = folder, [], {}

    def say(self, text: str = "") -> None:
        """Add a line of Markdown and print it."""
        print(text, flush=True)
        self.lines.append(text)

    def table(self, header: list[str], rows: list[list[object]], title="") -> None:
        """Add a Markdown table; the reader opens one with a title."""
        lines = ["| " + " | ".join(header) + " |", "|---" * len(header) + "|"]
        lines += ["| " + " | ".join(map(str, row)) + " |" for row in rows]
        for line in collapsed(title, lines) if title else lines:
            self.say(line)
        self.say()

    def text(self, figure=None) -> str:
        """Return the page."""
        head = [f"# {self.title}", "", self.conclusion, ""]
        if figure is not None:
            head += [f"![{self.title}]({self.name}.png)", ""]
        return "\n".join([*head, *self.lines]).rstrip() + "\n"

    def stored(self) -> dict | list:
        """Return the results that an earlier run left in the folder; {} without one."""
        path = self.folder / f"{self.name}.json"
        return json.loads(path.read_text("utf-8")) if path.exists() else {}

    def keep(self) -> None:
        """Write the results alone, before a page can be made of them."""
        self.folder.mkdir(parents=True, exist_ok=True)
        data = json.dumps(self.results, separators=(",", ":"))
        (self.folder / f"{self.name}.json").write_text(data + "\n")

    def write(self, figure=None) -> None:
        """Write what was collected, and the picture if there is one."""
        self.keep()
        path = self.folder / f"{self.name}.md"
        path.write_text(self.text(figure), encoding="utf-8")
        if figure is not None:
            picture = path.with_suffix(".png")
            figure.savefig(picture, dpi=110)
            with Image.open(picture) as drawn:  # a third of the size
                drawn.convert("RGB").quantize(64).save(picture, optimize=True)
        print(f"{path}: {time.process_time():.0f} s of processor time")


__all__ = ["Report", "arguments"]
