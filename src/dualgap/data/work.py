"""Log of a conversion, from which a stopped conversion resumes."""

from __future__ import annotations

import contextlib
import json
import logging
import os
import shutil
import threading
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Literal, TypedDict

from . import sources
from .atomic import _flush_folder, write_atomically
from .description import DESCRIPTION, ShardFields

if TYPE_CHECKING:
    from .conversion import _Conversion

logger = logging.getLogger("dualgap")


class StorePlan(TypedDict):
    """Inputs and options that determine the bytes of a store."""

    store_format: int
    inputs: dict[str, object]
    format: str
    dtype: str
    shuffle: bool
    seed: int
    memory: int
    zero_based: bool | Literal["auto"]
    n_features: int | None
    label: str
    weight: str | None


class WrittenShard(ShardFields):
    """Fields of a shard, with the checksums of its parts of arrays."""

    sums: dict[str, list[int]]


@dataclass
class Run:
    """Description of a run: a sorted chunk on the disk."""

    rows: int
    entries: int
    dense: bool
    wide: bool  # int64 indices
    weights: bool
    lowest: int  # column index, -1 without entries
    columns: int  # largest index + 1, or the width of the chunk
    largest_row: int
    whole: bool  # labels are whole numbers
    least: float
    most: float


@dataclass
class Work:
    """Hidden folder of a conversion, with its journal."""

    folder: str
    runs: dict[int, Run] = field(default_factory=dict)
    shards: dict[int, WrittenShard] = field(default_factory=dict)
    scattered: int | None = None  # number of runs, once it is known
    complete: str | None = None
    lock: threading.Lock = field(default_factory=threading.Lock)

    @classmethod
    @contextlib.contextmanager
    def begin(cls, target: str, plan: StorePlan, resume: bool) -> Iterator[Work]:
        """Open the folder and read the state that a killed conversion has left."""
        folder = cls._folder_of(target)
        work = cls(folder)
        if os.path.isdir(folder) and not resume:
            shutil.rmtree(folder)
        os.makedirs(folder, exist_ok=True)
        work._read(plan, target)
        yield work
        work._clear()
        shutil.rmtree(folder, ignore_errors=True)

    def run(self, conversion: _Conversion, source: sources.Source) -> None:
        """Run the conversion; remove the folder if the inputs are invalid.

        Corrected inputs would not match the state in the folder.
        """
        try:
            conversion.run(source)
        except (ValueError, TypeError, ImportError):
            shutil.rmtree(self.folder, ignore_errors=True)
            raise

    @classmethod
    def was_published(cls, target: str, plan: StorePlan) -> bool:
        """Whether an equal conversion was killed after the store was complete.

        Its hidden folder is then removed.
        """
        work = cls(cls._folder_of(target))
        where = os.path.join(work.folder, "plan.json")
        if not (os.path.isfile(where) and os.path.isdir(target)):
            return False
        with open(where, encoding="utf-8") as file:
            same = json.load(file) == json.loads(json.dumps(plan))
        ended = any("shard" in entry for entry in work._journal())
        if not (same and ended) or os.path.isdir(work.store):
            return False
        work._clear()
        shutil.rmtree(work.folder, ignore_errors=True)
        return True

    @staticmethod
    def _folder_of(target: str) -> str:
        parent, name = os.path.split(target)
        return os.path.join(parent, f".{name}.converting")

    def _clear(self) -> None:
        """Remove everything but the plan and the journal.

        These identify the folder if the process is killed now.
        """
        for name in os.listdir(self.folder):
            if name == "old":
                shutil.rmtree(os.path.join(self.folder, name), ignore_errors=True)
            elif name not in ("plan.json", "journal"):
                os.unlink(os.path.join(self.folder, name))

    def _read(self, plan: StorePlan, target: str) -> None:
        where = os.path.join(self.folder, "plan.json")
        if not os.path.exists(where):
            with write_atomically(where, "w") as file:
                json.dump(plan, file)
            return
        with open(where, encoding="utf-8") as file:
            earlier = json.load(file)
        now = json.loads(json.dumps(plan))
        changed = sorted(key for key in now if earlier.get(key) != now[key])
        if changed:
            raise ValueError(
                f"{target} has an unfinished conversion with different "
                f"{', '.join(changed)}; repeat that call to resume it, or start over "
                "with resume=False"
            )
        if os.path.isfile(os.path.join(self.store, DESCRIPTION)):
            self.complete = self.store
        entries = list(self._journal())
        if any("shard" in entry for entry in entries) and not os.path.isdir(self.store):
            # A conversion was killed after it had renamed the store.
            os.unlink(os.path.join(self.folder, "journal"))
            return
        for entry in entries:
            if "run" in entry:
                self.runs[entry["run"]] = Run(**entry["is"])
            elif "shard" in entry:
                self.shards[entry["shard"]] = entry["is"]
            else:
                self.scattered = entry["runs"]
        if self.runs:
            logger.info(
                "convert: resuming after %d runs and %d shards",
                len(self.runs), len(self.shards),
            )  # fmt: skip

    def _journal(self) -> Iterator[dict[str, Any]]:
        where = os.path.join(self.folder, "journal")
        if not os.path.exists(where):
            return
        with open(where, "rb+") as file:
            whole = 0
            for line in file:
                try:
                    entry = json.loads(line) if line.endswith(b"\n") else None
                except ValueError:
                    entry = None
                if entry is None:
                    break  # the process was killed while it wrote this line
                whole += len(line)
                yield entry
            file.truncate(whole)

    def note(self, **entry: object) -> None:
        """Add a line to the journal, after the data it describes are on the disk."""
        with self.lock, open(os.path.join(self.folder, "journal"), "ab") as file:
            file.write(json.dumps(entry).encode() + b"\n")
            file.flush()
            os.fsync(file.fileno())

    @property
    def store(self) -> str:
        return os.path.join(self.folder, "store")

    def run_file(self, k: int) -> str:
        return os.path.join(self.folder, f"run-{k:06d}")

    def publish(self, target: str) -> None:
        """Rename the complete store to its target."""
        _flush_folder(self.store)
        old = os.path.join(self.folder, "old")
        if os.path.lexists(target):
            if os.path.isdir(old):
                shutil.rmtree(old)
            os.rename(target, old)
        os.rename(self.store, target)
        _flush_folder(os.path.dirname(target))
