"""Pieces on the workers of a Dask cluster, and recovery when a worker dies.

A piece is a Dask future that its worker changes in place. Only small orders and
d-vectors move between workers. A tree of tasks on the workers adds up the replies and
w. The client receives numbers, and one vector for a proof.

If a worker dies, Dask builds its pieces again on other workers from the source of the
data, without duals. Such a piece replies that it has lost its duals. It then gets the
duals of the last checkpoint, which another worker holds, or zeros, and w is summed up
again from all duals. Dask may also run a task twice or move a piece. This is detected
in the same way, because every order names the round that it builds on.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import math
import statistics
import time
import uuid
import weakref
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import CancelledError
from dataclasses import dataclass
from operator import itemgetter
from typing import TYPE_CHECKING, Any, ClassVar

import dask
import numpy as np
from dask import delayed
from distributed import Client, Future, wait
from distributed.scheduler import KilledWorker

from .. import core
from ..data.store import RowStore
from ..losses import Vector
from .collections import Block, Blocks, join
from .engine import ARITY, Engine, RoundOutcome, aggregate, branches, zero
from .messages import Order, Reply, Task
from .piece import Census, Piece, Setup
from .stores import StorePart, host_of, part_of, see

if TYPE_CHECKING:
    from dask.delayed import Delayed

logger = logging.getLogger("dualgap")

# Pieces in use, with the tokens of their fits.
_RUNNING: weakref.WeakKeyDictionary[Piece, str] = weakref.WeakKeyDictionary()

# They are the same class from Python 3.11 on.
_TIMEOUTS = (TimeoutError, asyncio.TimeoutError)


@dataclass(frozen=True)
class ClusterSettings:
    """Tuning constants of a fit on a cluster, in seconds."""

    #: Time between two checks for events.
    glance: float = 0.1
    #: Time between two checks of live workers.
    look: float = 0.5
    #: A round goes on without workers that take `patience` times its usual time, and
    #: at least this time.
    least_patience: float = 10.0
    #: Time to wait for a new worker on a host that alone has a store.
    absence: float = 60.0
    #: Time to wait for the scheduler to come back.
    scheduler: float = 60.0


class ClusterError(RuntimeError):
    """Raised when the cluster cannot go on; the message names the remedy."""


class _Disturbed(Exception):  # noqa: N818  (it never leaves this module)
    """Raised when a piece has to be found or built again."""


class Cluster(Engine):
    """Engine that runs pieces on the workers of a Dask cluster.

    By default there are at least 10 rounds between two checkpoints of the duals, and
    enough that checkpoints add about a tenth to the traffic. Steps of workers that a
    round did not wait for count when they arrive. A ClusterError tells that the
    scheduler or the data are lost.
    """

    settings: ClassVar[ClusterSettings] = ClusterSettings()

    def __init__(
        self,
        client: Client,
        pieces: Blocks,
        *,
        stop: core.Stop,
        deadline: float,
        safe_every: int | None,
        patience: float,
    ) -> None:
        self.client, self.patience = client, patience
        self.stop, self.deadline = stop, deadline
        self.token = f"dualgap-{uuid.uuid4().hex[:12]}"
        self.address = client.scheduler.address if client.scheduler else "?"
        self.futures: list[Future] = []
        self.homes: list[str] = []
        self.hosts: dict[int, set[str]] = {}  # of pieces that some workers cannot open
        self.walls: list[float] = []  # seconds of the rounds of epochs
        self.running: dict[int, Future] = {}  # late replies
        self.safe: list[Future] = []
        self.saving: list[Future] = []
        self._looked = 0.0
        with self._one_clear_error():
            self._load(pieces)
            found = self._ask_all("census")
        self.census: list[Census] = found
        if safe_every is None:
            rows = max(census.rows for census in found)
            width = max(census.width for census in found)
            safe_every = max(10, -(-10 * rows // max(2 * width, 1)))
        self.safe_every = safe_every

    def begin(self, setup: Setup) -> None:
        """Start a fit of the binary problems that `setup` makes of the rows."""
        super().__init__(self.census, setup)
        self.state = self._submit(zero, self.problems, self.width)

    # Pieces

    def _load(self, pieces: Blocks) -> None:
        self._alive()
        pieces = self._with_stores_seen(pieces)
        flat = [part for blocks in pieces for block in blocks for part in block]
        loaded = iter(self.client.compute(flat))
        parts = [
            [[next(loaded) for _ in block] for block in blocks] for blocks in pieces
        ]
        waiting = list(_futures(parts))
        self._wait(waiting)
        _raise_first(waiting)
        for index, home in enumerate(self._best_homes(parts)):
            bound = self.hosts.get(index)
            self.futures.append(
                self.client.submit(
                    build, parts[index], index, key=f"{self.token}-piece-{index}",
                    workers=[home] if bound is None else sorted(bound),
                    allow_other_workers=bound is None, pure=False,
                )
            )  # fmt: skip
        self._wait(self.futures)
        _raise_first(self.futures)
        # The scheduler keeps published pieces if the client loses its connection.
        self.client.publish_dataset(**{self.token: self.futures})
        self._find_homes()

    def _with_stores_seen(self, pieces: Blocks) -> list[Sequence[Block]]:
        """Return the pieces, with the checksums of their stores.

        For stores that some workers cannot open, note the hosts that can.
        """
        out: list[Sequence[Block]] = list(pieces)
        first = {index: blocks[0][0] for index, blocks in enumerate(out)}
        stored = {i: part for i, part in first.items() if isinstance(part, StorePart)}
        found = see(self.client, list(stored.values())) if stored else []
        for index, (part, hosts) in zip(stored, found, strict=True):
            out[index] = [(part,)]
            if hosts is not None:
                self.hosts[index] = hosts
        return out

    def _best_homes(self, parts: list[list[list[Future]]]) -> list[str]:
        """Return a worker for each piece.

        Each piece goes to the worker that already holds most of it, but no worker gets
        more than its share of the pieces.
        """
        threads = self._alive()
        share = {
            address: -(-len(parts) * count // sum(threads.values()))
            for address, count in threads.items()
        }
        futures = list(_futures(parts))
        held = self.client.who_has(futures) if futures else {}
        homes = []
        for blocks in parts:
            votes = Counter(a for f in _futures(blocks) for a in held.get(f.key, ()))
            home = max(share, key=lambda a: (share[a] > 0, votes[a], share[a]))
            share[home] -= 1
            homes.append(home)
        return homes

    def _find_homes(self) -> None:
        held = self.client.who_has(self.futures)
        homes = []
        for future in self.futures:
            where = held.get(future.key) or ()
            if not where:
                raise _Disturbed
            homes.append(sorted(where)[0])
        self.homes = homes

    def _alive(self) -> dict[str, int]:
        """Return the workers and their threads; wait until there is a worker."""
        for _ in range(600):
            threads = dict(self.client.nthreads())
            if threads:
                return threads
            time.sleep(self.settings.glance)
        raise ClusterError(
            f"the cluster at {self.address} has had no worker for a minute; start "
            "workers and fit again"
        )

    def _submit(
        self, function: Callable[..., object], *args: object, **options: object
    ) -> Future:
        return self.client.submit(function, *args, pure=False, **options)

    def _on(self, index: int, method: str, *args: object) -> Future:
        """Submit a call of a method of piece `index` to its worker."""
        return self._submit(
            call, self.futures[index], self.token, method, *args,
            workers=[self.homes[index]],
        )  # fmt: skip

    def _ask_all(self, method: str, *args: Sequence[object]) -> list[Any]:
        """Return what a method of every piece returns, however often they move."""
        for _ in range(len(self.futures) + 3):
            try:
                asked = [
                    self._on(i, method, *(a[i] for a in args))
                    for i in range(len(self.futures))
                ]
                self._wait(asked)
                _raise_first(asked)
                return list(self.client.gather(asked))
            except (_Disturbed, CancelledError):
                self._settle_down()
        raise ClusterError(
            "workers are lost faster than their data can be loaded again; check "
            "their logs, as they may lack memory"
        )

    # Waiting

    def _wait(
        self, futures: Sequence[Future], patience: float | None = None
    ) -> set[Future]:
        """Wait for futures, at most `patience` seconds; return the finished ones.

        If a piece is no longer where it was, this raises `_Disturbed`.
        """
        begun, told = time.monotonic(), -math.inf
        pending = list(futures)
        while pending:
            with contextlib.suppress(*_TIMEOUTS):
                wait(pending, timeout=self.settings.glance)
                break
            pending = [f for f in pending if f.status == "pending"]
            if any(f.status in ("cancelled", "lost") for f in futures):
                raise _Disturbed
            if self._scheduler_is_away():
                raise _Disturbed
            now = time.monotonic()
            if self.homes and now - self._looked > self.settings.look:
                self._looked = now
                if not set(self.homes) <= set(self.client.nthreads()):
                    raise _Disturbed
            # Repeat the request, as a worker may begin its epochs after the first one.
            if self.stop.requested and now - told > self.settings.look:
                told = now
                self.client.run(leave, self.token, wait=False)  # some may not answer
            if patience is not None and now - begun > patience:
                break
        return {f for f in futures if f.status == "finished"}

    def _scheduler_is_away(self) -> bool:
        return self.client.status != "running"

    def _settle_down(self) -> None:
        """Wait after a disturbance until every piece is on a worker again."""
        self.homes = []
        self._find_scheduler()
        tries, begun = 0, time.monotonic()
        while True:
            self._find_scheduler()
            alive = self._alive()
            if time.monotonic() - begun > self.settings.absence:
                self._check_stores_are_seen(alive)
            states = {future.status for future in self.futures}
            if "error" in states:
                _raise_first(self.futures)
            if "cancelled" in states and tries < 3:
                tries += 1
                self._find_pieces_again()
                time.sleep(self.settings.look)
                continue
            if "cancelled" in states:
                raise ClusterError(
                    "data of this fit were lost with a worker and cannot be loaded "
                    "again. Pass delayed pieces or collections instead of scattered "
                    "futures, or replicate the futures"
                )
            # A "lost" future is being computed again. The scheduler may not know yet
            # that a worker has just died.
            if states == {"finished"}:
                with contextlib.suppress(_Disturbed):
                    self._find_homes()
                    if set(self.homes) <= set(alive):
                        return
                self.homes = []
            time.sleep(self.settings.glance)

    def _check_stores_are_seen(self, alive: Iterable[str]) -> None:
        here = {host_of(address) for address in alive}
        for index, hosts in self.hosts.items():
            if not hosts & here:
                raise ClusterError(
                    f"piece {index} is a store that only {', '.join(sorted(hosts))} "
                    "can open, and no worker runs there now; start one and fit again"
                )

    def _find_scheduler(self) -> None:
        limit = time.monotonic() + self.settings.scheduler
        while self._scheduler_is_away():
            if self.client.status in ("closed", "closing") or time.monotonic() > limit:
                raise ClusterError(
                    f"the scheduler at {self.address} is gone; start a cluster and fit "
                    "again"
                )
            time.sleep(self.settings.glance)

    def _find_pieces_again(self) -> None:
        """Get the published futures, which survive a lost connection of the client."""
        try:
            self.futures = list(self.client.get_dataset(self.token))
        except KeyError:
            raise ClusterError(
                f"the scheduler at {self.address} was restarted and lost the data of "
                "this fit; fit again"
            ) from None

    # Rounds

    def play(self, tasks: dict[int, Task]) -> tuple[Mapping[int, int], RoundOutcome]:
        with self._one_clear_error():
            try:
                return self._play(tasks)
            except (_Disturbed, CancelledError):
                self.running.clear()
                before = dict(enumerate(self.homes))
                keys = [f.key for f in self.futures]
                self._settle_down()
                lost = [i for i, home in before.items() if self.homes[i] != home]
                logger.warning(
                    "pieces %s were lost in round %d; they restart from the last "
                    "checkpoint", lost or "unknown", self.rounds,
                )  # fmt: skip
                assert keys == [f.key for f in self.futures]
                # If it is unknown which pieces were lost, recover asks all of them.
                return {}, RoundOutcome(lost=lost or [0])

    def _play(self, tasks: dict[int, Task]) -> tuple[Mapping[int, int], RoundOutcome]:
        advancing = all(task.kind == "advance" for task in tasks.values())
        begun = time.perf_counter()
        members = self._late_replies(advancing)
        replies = {index: self.running.pop(index) for index in members}
        asked = {}
        for index in range(self.count):
            if index in self.running or index in replies:
                continue
            order = self.order(index, tasks)
            home = [self.homes[index]]
            with dask.annotate(workers=home, allow_other_workers=False):
                asked[index] = later(call)(
                    self.futures[index], self.token, "take_part", self.setup, order,
                    self.state,
                )  # fmt: skip
            members[index] = self.rounds
        # Submit one graph: a message for every task would cost several times as much.
        state, outcome, *there = self._reduce(replies | asked, tasks, asked.values())
        replies = dict(sorted((replies | dict(zip(asked, there, strict=True))).items()))
        least = self.settings.least_patience
        usual = statistics.median(self.walls[-9:]) if self.walls else least
        patience = max(least, self.patience * usual) if advancing else None
        finished = self._wait([outcome], patience)
        if not finished and outcome.status == "pending":
            ready = self._leave_out_the_late(replies, members)
            quick = sorted({self.homes[index] for index in ready})
            with dask.annotate(workers=quick, allow_other_workers=False):
                state, outcome = self._reduce(ready, tasks)
            self._wait([outcome])
        _raise_first([outcome])
        found: RoundOutcome = outcome.result()
        found.late = len(self.running)
        if not found.lost:
            self.state = state
            if advancing:
                self.walls.append(time.perf_counter() - begun)
            self._save()
        return members, found

    def _late_replies(self, advancing: bool) -> dict[int, int]:
        """Return the pieces whose late replies have arrived, with their rounds."""
        if not advancing and self.running:
            # A sum over all duals needs all pieces. Discard the steps of late pieces.
            self._wait(list(self.running.values()))
            for index in self.running:
                self.after[index] = self.late.pop(index)
                self.gammas[index] = dict.fromkeys(range(self.problems), 0.0)
            self.running.clear()
        return {
            index: self.late.pop(index)
            for index, future in list(self.running.items())
            if future.status == "finished"
        }

    def _leave_out_the_late(
        self, replies: dict[int, Future], members: dict[int, int]
    ) -> dict[int, Future]:
        """Return the replies that have arrived (at least one); note the late ones."""
        while True:
            ready = {i: f for i, f in replies.items() if f.status == "finished"}
            if ready:
                break
            self._wait(list(replies.values()), self.settings.least_patience)
        for index in set(replies) - set(ready):
            self.running[index] = replies[index]
            self.late[index] = members.pop(index)
        logger.warning(
            "round %d goes on without pieces %s", self.rounds, sorted(self.running)
        )
        return ready

    def _reduce(
        self,
        replies: dict[int, Future],
        tasks: dict[int, Task],
        asked: Iterable[Future] = (),
    ) -> list[Future]:
        """Return futures of the new state, of its outcome, and of the asked replies."""
        level = [replies[index] for index in sorted(replies)]
        while len(level) > ARITY:
            level = [later(Reply.merge)(list(group)) for group in branches(level)]
        state = later(aggregate)(self.state, level, tasks)
        graph = [state, later(itemgetter(1))(state), *asked]
        return list(self.client.compute(graph, optimize_graph=False))

    # Checkpoints

    def _save(self) -> None:
        """Copy all duals to other workers, every `safe_every` rounds."""
        if self.saving and all(f.status == "finished" for f in self.saving):
            self.safe, self.saving = self.saving, []
        if self.rounds % self.safe_every or self.running or self.saving:
            return
        addresses = sorted(set(self.homes) | set(self.client.nthreads()))
        for index, home in enumerate(self.homes):
            other = addresses[(addresses.index(home) + 1) % len(addresses)]
            taken = self._on(index, "duals")
            self.saving.append(
                self._submit(list, taken, workers=[other], allow_other_workers=True)
            )

    def restore(self, orders: Sequence[Order]) -> None:
        with self._one_clear_error():
            whole = [
                held
                for held in (self.saving, self.safe)
                if len(held) == self.count
                and all(future.status == "finished" for future in held)
            ]
            held = whole[0] if whole else []
            duals = held or [None] * self.count
            self._ask_all("recover", [self.setup] * self.count, orders, duals)
            # A copy in progress may wait for a worker that is gone.
            self.safe, self.saving = held, []
            self.state = self._submit(zero, self.problems, self.width)

    def signed_duals(self) -> Vector:
        """Return ``y_i alpha_i`` of all problems and rows, (problems, n)."""
        with self._one_clear_error():
            found = self._ask_all("signed_duals", [self.setup] * self.count)
        return np.concatenate(found, axis=1)

    def moments(self, k: int, w: Vector) -> Vector:
        """Return the moments of the decision values of problem k over all rows."""
        alike = [[value] * self.count for value in (self.setup, k, w)]
        with self._one_clear_error():
            return np.sum(self._ask_all("moments", *alike), axis=0)

    # Errors and cleanup

    @contextlib.contextmanager
    def _one_clear_error(self) -> Iterator[None]:
        """Turn every failure of the cluster into a ClusterError."""
        try:
            yield
        except ClusterError:
            raise
        except KilledWorker as error:
            raise ClusterError(
                f"a piece of the data brings down every worker that gets it ({error}); "
                "give workers more memory, or use more pieces"
            ) from error
        except (OSError, *_TIMEOUTS, CancelledError) as error:
            raise ClusterError(
                f"the cluster at {self.address} failed: {error}; check the logs of "
                "scheduler and workers, and fit again"
            ) from error

    def close(self) -> None:
        """Release the pieces and everything else on the cluster."""
        with contextlib.suppress(Exception):
            if not self._scheduler_is_away():
                self.client.unpublish_dataset(self.token)
        self.futures, self.safe, self.saving, self.running = [], [], [], {}
        self.state = None


def _futures(nested: object) -> Iterator[Future]:
    """Yield the futures in nested lists of blocks."""
    if isinstance(nested, (list, tuple)):
        for part in nested:
            yield from _futures(part)
    elif isinstance(nested, Future):
        yield nested


def _raise_first(futures: Iterable[Future]) -> None:
    """Raise the error of the first future that has one, or that it is lost."""
    for future in futures:
        if future.status == "error":
            raise future.exception()
        if future.status in ("cancelled", "lost"):
            raise _Disturbed


# Functions that workers run


def later(function: Callable[..., object]) -> Delayed:
    """Wrap a function as a task of a graph.

    The function is sent by its name. A decorated function would be sent as a copy with
    its own `_RUNNING`.
    """
    return delayed(function, pure=False)


def build(blocks: Sequence[Block], index: int) -> Piece:
    """Make a piece of its blocks: rows, or a store."""
    whole: Any = [part for block in blocks for part in block]
    if len(whole) == 1 and isinstance(whole[0], (RowStore, StorePart)):
        return Piece.of(part_of(whole[0]), index)
    return Piece(*join(blocks, index), index=index)


def call(piece: Piece, fit: str, method: str, *args: object) -> object:
    """Return what a method of a piece returns, which takes part in a fit."""
    _RUNNING[piece] = fit
    return getattr(piece, method)(*args)


async def leave(fit: str) -> None:  # a client does not wait for coroutines only
    """End the epochs of this fit that run on this worker."""
    for reference in _RUNNING.keyrefs():
        piece = reference()
        if piece is not None and _RUNNING.get(piece) == fit:
            piece.stop.request()
