"""Full disks, damaged files, too little memory, forks, threads, Ctrl-C.

What could harm the process of the tests, limits, forks, signals, happens in processes
of its own; each says in one line per case what came of it.
"""

from __future__ import annotations

import importlib.util
import os
import pickle
import shutil
import subprocess
import sys

import numpy as np
import pytest

from dualgap import SVC, LinearSVC
from dualgap.data import RowStore, convert

from ..conftest import ROOT, unsanitized

pytestmark = pytest.mark.long

POSIX = pytest.mark.skipif(sys.platform == "win32", reason="POSIX limits and signals")
LINUX = pytest.mark.skipif(
    not sys.platform.startswith("linux"), reason="limits of the address space, /proc"
)


def rows(n=60, d=4, classes=2, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, d))
    score = X @ rng.normal(size=d) + 0.3 * rng.normal(size=n)
    edges = np.quantile(score, np.linspace(0, 1, classes + 1)[1:-1])
    return X, np.digitize(score, edges)


def run(script, *arguments, before=(), timeout=300):
    """Return the output of a script that runs in another process."""
    done = subprocess.run(
        [*before, sys.executable, "-c", script, *map(str, arguments)],
        capture_output=True, text=True, timeout=timeout, check=False,
    )  # fmt: skip
    assert done.returncode == 0, (done.returncode, done.stdout, done.stderr[-3000:])
    return done.stdout


# ------------------------------------------------------------------ disks and folders

#: A file system of so many kB at the folder named, in a name space of its own.
MOUNT = """
mount -t tmpfs -o size="$1" none "$2" || exit 99
shift 2; exec "$@"
"""


@pytest.fixture
def small_disk(tmp_path):
    """Command that runs another with a small file system at tmp_path/"disk"."""
    folder = tmp_path / "disk"
    folder.mkdir()
    unshare = ["unshare", "-m"] if os.geteuid() == 0 else ["unshare", "-rm"]
    before = [*unshare, "sh", "-c", MOUNT, "sh", "256k", str(folder)]
    if shutil.which("unshare") is None:
        pytest.skip("no unshare to mount a file system with")
    probe = subprocess.run([*before, "true"], capture_output=True, check=False)
    if probe.returncode != 0:
        pytest.skip(f"cannot mount: {probe.stderr.decode()[:100]}")
    return before, folder


FULL_DISK = """
import errno, os, resource, subprocess, sys, warnings
import numpy as np
from dualgap import LinearSVC, save_model
from dualgap.training.checkpoint import FORMAT as CHECKPOINT
from dualgap.data import convert
from dualgap.data.model_file import read

folder, kind = sys.argv[1:]
os.chdir(folder)
rng = np.random.default_rng(0)
X = rng.normal(size=(40, 3000))
y = np.where(X[:, 0] > 0, 1, -1)
small, large = LinearSVC().fit(X[:, :10], y), LinearSVC().fit(X, y)
large.coef_ = np.tile(large.coef_, (1, 20))
large.n_features_in_ = 60_000

def set_limit(full):
    if kind == "limit":
        size = 256 * 1024 if full else resource.RLIM_INFINITY
        hard = resource.getrlimit(resource.RLIMIT_FSIZE)[1]
        resource.setrlimit(resource.RLIMIT_FSIZE, (size, hard))
    elif not full:
        subprocess.run(["mount", "-o", "remount,size=64m", folder], check=True)

def fails(name, work):
    try:
        work()
    except OSError as error:
        assert error.errno in (errno.ENOSPC, errno.EFBIG), error
        print(name, "OSError")
    else:
        print(name, "went through")

set_limit(True)
save_model(small, "model")
old = open("model", "rb").read()
fails("model", lambda: save_model(large, "model"))
assert open("model", "rb").read() == old
assert os.listdir() == ["model"], os.listdir()
os.remove("model")

wide = rng.normal(size=60_000) + 0.1 * rng.normal(size=(60, 60_000))  # many epochs
wide_y = np.where(wide[:, 0] > wide[0, 0], 1, -1)
fit = LinearSVC(tol=1e-9, checkpoint="checkpoint", checkpoint_every=1e-9, C=1e3,
                solver="dcd", max_iter=50, random_state=0)
fails("checkpoint", lambda: fit.fit(wide, wide_y))
assert set(os.listdir()) <= {"checkpoint"}, os.listdir()  # an earlier one, whole
if os.path.exists("checkpoint"):
    read("checkpoint", CHECKPOINT)

fails("store", lambda: convert([(X, y)], "store", memory=2**20))
assert set(os.listdir()) <= {"checkpoint"}, os.listdir()
set_limit(False)
with warnings.catch_warnings():
    warnings.simplefilter("ignore")
    store = convert([(X, y)], "store", memory=2**20)
store.verify()
assert set(os.listdir()) <= {"checkpoint", "store"}, os.listdir()
print("store", store.fingerprint)
save_model(large, "model")
fit.fit(wide, wide_y)
print("again", sorted(os.listdir()))
"""


@POSIX
@pytest.mark.parametrize("kind", ["limit", "disk"])
def test_a_full_disk_is_an_error_that_loses_nothing(tmp_path, kind, request):
    before, folder = [], tmp_path
    if kind == "disk":
        before, folder = request.getfixturevalue("small_disk")
    told = run(FULL_DISK, folder, kind, before=before).splitlines()
    assert told[:3] == ["model OSError", "checkpoint OSError", "store OSError"]
    # With room, the conversion makes the store that it would have made.
    rng = np.random.default_rng(0)
    X = rng.normal(size=(40, 3000))
    (tmp_path / "other").mkdir()
    whole = convert(
        [(X, np.where(X[:, 0] > 0, 1, -1))], tmp_path / "other" / "store", memory=2**20
    )
    assert told[3] == f"store {whole.fingerprint}"
    assert told[4] == "again ['checkpoint', 'model', 'store']"


READ_ONLY = """
import errno, os, subprocess, sys
import numpy as np
from dualgap import LinearSVC, load_model, save_model
from dualgap.data import RowStore, convert

folder, = sys.argv[1:]
os.chdir(folder)
rng = np.random.default_rng(0)
X = rng.normal(size=(60, 5))
y = np.where(X[:, 0] > 0, 1, -1)
model = LinearSVC().fit(X, y)
save_model(model, "model")
convert([(X, y)], "store")
there = sorted(os.listdir())
subprocess.run(["mount", "-o", "remount,ro", folder], check=True)
for name, work in {
    "model": lambda: save_model(model, "model"),
    "new model": lambda: save_model(model, "model-2"),
    "checkpoint": lambda: LinearSVC(checkpoint="checkpoint", random_state=0).fit(X, y),
    "store": lambda: convert([(X, y)], "store-2"),
}.items():
    try:
        work()
    except OSError as error:
        assert error.errno in (errno.EACCES, errno.EROFS), error
        print(name, "OSError")
# What is there can be used.
assert np.array_equal(load_model("model").coef_, model.coef_)
store = RowStore.open("store", buffer=2**20)
store.verify()
assert LinearSVC().fit(store).certificate_.certified
assert sorted(os.listdir()) == there
"""


@LINUX
def test_read_only_folders_are_refused_for_writing_and_good_for_reading(small_disk):
    before, folder = small_disk
    told = run(READ_ONLY, folder, before=before).splitlines()
    names = ["model", "new model", "checkpoint", "store"]
    assert told == [f"{name} OSError" for name in names]


# ---------------------------------------------------------------------- damaged files


@pytest.fixture(scope="module")
def script():
    """``benchmarks/trust/flips.py``, which flips all bits of all these files."""
    path = ROOT / "benchmarks" / "trust" / "flips.py"
    spec = importlib.util.spec_from_file_location("flips", path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.mark.parametrize(("kind", "bits"), [("LinearSVC", 8), ("SVC", 1)])
def test_every_flipped_bit_of_a_model_is_noticed(tmp_path, script, kind, bits):
    """The larger file has one bit of every byte flipped; a few flips change nothing."""
    write, read = script.FILES[kind]
    write(tmp_path / "model")
    size, flips, refused, harmless = script.flip(tmp_path / "model", read, bits)
    assert flips == bits * size
    assert harmless <= 10
    assert refused == flips - harmless
    read(tmp_path / "model")


def test_flipped_bits_of_a_checkpoint_and_of_a_store_are_noticed(tmp_path, script):
    write, read = script.FILES["checkpoint"]
    write(tmp_path / "checkpoint")
    assert script.flip(tmp_path / "checkpoint", read, 1)[3] <= 10
    for dense in (True, False):
        for file in script.write_store(tmp_path / str(dense), dense):
            assert script.flip(file, script.read_store, 1)[3] == 0, file.name


def test_files_cut_anywhere_are_refused(tmp_path, script):
    for kind, (write, read) in script.FILES.items():
        path = tmp_path / kind
        write(path)
        content = path.read_bytes()
        for length in range(0, len(content), 1 if kind == "LinearSVC" else 7):
            path.write_bytes(content[:length])
            with pytest.raises(ValueError):  # noqa: PT011  (any sentence)
                read(path)
    for file in script.write_store(tmp_path / "store", False):
        content = file.read_bytes()
        for length in script.places(file):
            file.write_bytes(content[:length])
            with pytest.raises(ValueError):  # noqa: PT011
                RowStore.open(tmp_path / "store")
        file.unlink()
        with pytest.raises((ValueError, FileNotFoundError)):
            RowStore.open(tmp_path / "store")
        file.write_bytes(content)


# ------------------------------------------------------------------ too little memory

LIMITED = """
import ctypes, gc, os, resource, sys, warnings
import numpy as np
from scipy import sparse
from dualgap import SVC, LinearSVC
from dualgap.data import load_svmlight
from dualgap.data import RowStore, convert

warnings.simplefilter("ignore")
os.chdir(sys.argv[1])
rng = np.random.default_rng(0)
X = rng.normal(size=(4000, 300))
y = np.where(X[:, 0] + 0.5 * rng.normal(size=4000) > 0, 1, -1)
S = sparse.random(20_000, 5000, 0.004, "csr", random_state=rng)
three = np.digitize(X[:, 0], [-0.5, 0.5])
z = np.where(S @ rng.normal(size=5000) > 0, 1, -1)
with open("text", "w") as file:
    for label, row in zip(z, S):
        pairs = " ".join(f"{j + 1}:{v:.6g}" for j, v in zip(row.indices, row.data))
        file.write(f"{label} {pairs}\\n")
convert([(S, z)], "store")
kernel = SVC(max_iter=3, random_state=0, kernel="rbf").fit(X[:1500], y[:1500])
linear = LinearSVC(C=0.01).fit(X, y)

seed = {"C": 0.01, "random_state": 0}

def few(X, y):
    return SVC(max_iter=3, random_state=0).fit(X, y)

def made_anew():
    import shutil
    shutil.rmtree("made", ignore_errors=True)
    shutil.rmtree(".made.converting", ignore_errors=True)
    return convert("text", "made", memory=2**22, n_jobs=2).fingerprint

def bits(model):
    return model.coef_.tobytes()

stages = {
    "dense": lambda: bits(LinearSVC(**seed, solver="dcd").fit(X, y)),
    "float32": lambda: bits(LinearSVC(**seed).fit(X.astype(np.float32), y)),
    "interior point": lambda: bits(
        LinearSVC(**seed, solver="interior-point", n_jobs=2).fit(X[:, :100], y)
    ),
    "sparse": lambda: bits(LinearSVC(**seed, n_jobs=2).fit(S, z)),
    "classes": lambda: bits(LinearSVC(**seed, n_jobs=2).fit(X, three)),
    "kernel": lambda: few(X[:1500], y[:1500]).dual_coef_.tobytes(),
    "stream": lambda: bits(LinearSVC(**seed).fit(RowStore.open("store", buffer=2**20))),
    "text": lambda: load_svmlight("text", n_jobs=2)[0].data.tobytes(),
    "convert": made_anew,
    "predict": lambda: linear.decision_function(np.repeat(X, 4, 0)).tobytes(),
    "kernel predict": lambda: kernel.decision_function(X).tobytes(),
}

# What was freed goes back to the system, or fits would live on that (glibc).
trim = getattr(ctypes.CDLL(None), "malloc_trim", lambda pad: None)

def size():
    with open("/proc/self/statm") as file:
        return int(file.read().split()[0]) * resource.getpagesize()

hard = resource.getrlimit(resource.RLIMIT_AS)[1]
for name, stage in stages.items():
    expected = stage()  # also loads what is loaded when it is first used
    refused = 0
    for extra in map(int, sys.argv[2:]):
        gc.collect()
        trim(0)
        resource.setrlimit(resource.RLIMIT_AS, (size() + extra * 2**10, hard))
        try:
            found = stage()
        except MemoryError:
            found, refused = expected, refused + 1
        finally:
            resource.setrlimit(resource.RLIMIT_AS, (hard, hard))
        assert found == expected, (name, extra)
    # Nothing is broken afterwards.
    assert stage() == expected, name
    print(name, refused)
"""
EXTRA = [0, 300, 1000, 3000, 10_000, 25_000, 60_000, 200_000]  # kB


@LINUX
@unsanitized("it maps terabytes for itself")
def test_too_little_memory_is_a_memory_error_and_nothing_worse(tmp_path):
    environment = {"MALLOC_ARENA_MAX": "1", "OPENBLAS_NUM_THREADS": "1"}
    before = ["env", *(f"{key}={value}" for key, value in environment.items())]
    told = run(LIMITED, tmp_path, *EXTRA, before=before)
    refused = dict(line.rsplit(" ", 1) for line in told.splitlines())
    assert len(refused) == 11
    # The limits were felt.
    assert sum(int(count) > 0 for count in refused.values()) >= 6, refused


# ------------------------------------------------------------------- forks and threads

FORK = """
import os, sys, threading, warnings
import numpy as np
from dualgap import SVC, LinearSVC

warnings.simplefilter("ignore")
rng = np.random.default_rng(0)
X = rng.normal(size=(3000, 20))
y = rng.integers(0, 3, 3000)

def fits():
    linear = LinearSVC(C=0.01, n_jobs=2, max_iter=50, random_state=0).fit(X, y)
    point = LinearSVC(C=0.01, n_jobs=2, solver="interior-point").fit(X, y)
    kernel = SVC(max_iter=5, random_state=0).fit(X[:300], y[:300])
    return b"".join(
        a.tobytes() for a in (linear.coef_, point.coef_, kernel.dual_coef_)
    )

expected = fits()  # threads have run
busy = threading.Event()

def forever():
    while not busy.is_set():
        # Not of the global generator: a fork may copy its lock while it is held.
        LinearSVC(C=1.0, n_jobs=2, max_iter=20, random_state=0).fit(X, y)

other = threading.Thread(target=forever)
other.start()
children = []
for _ in range(2):
    pid = os.fork()
    if pid == 0:
        os._exit(0 if fits() == expected else 3)
    children.append(pid)
for pid in children:
    print(os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]))
busy.set()
other.join()
print(fits() == expected)
"""


@POSIX
@unsanitized("it ends with a fork")
def test_a_fork_after_threads_and_amid_a_fit_trains_the_same():
    assert run(FORK).split() == ["0", "0", "True"]


FORK_AMID_LIMITS = """
import os, threading
from dualgap.blas import algebra, limited

algebra()  # a child of a process that imports would wait for the import
ended = threading.Event()

def change():
    while not ended.is_set():
        with limited(1):
            pass

other = threading.Thread(target=change)
other.start()
for _ in range(50):
    pid = os.fork()
    if pid == 0:
        with limited(1):
            os._exit(0)
    assert os.waitpid(pid, 0)[1] == 0
ended.set()
other.join()
print("ended")
"""


@POSIX
@unsanitized("it ends with a fork")
def test_a_fork_while_blas_gets_and_loses_threads_leaves_no_lock():
    assert run(FORK_AMID_LIMITS) == "ended\n"


# ------------------------------------------------------------------------------ Ctrl-C

CTRL_C = """
import os, shutil, signal, sys, threading, time, warnings
import numpy as np
from dualgap import SVC, LinearSVC, save_model
from dualgap.data import load_svmlight
from dualgap.problems import BinaryProblem as Problem
from dualgap.data import RowStore, convert

warnings.simplefilter("ignore")
os.chdir(sys.argv[1])
rng = np.random.default_rng(0)
X = rng.normal(size=(20_000, 100))
y = np.where(X[:, 0] + rng.normal(size=20_000) > 0, 1, -1)
store = convert([(X, y)], "store")
small = RowStore.open("store", buffer=2**21)
three = np.digitize(X[:, 0], [-1, 1])
with open("text", "w") as file:
    line = " ".join(f"{j + 1}:{v:.6g}" for j, v in enumerate(X[0]))
    for k in range(100):
        file.write(f"{k % 2} {line}\\n")
linear = LinearSVC(C=1e-4, tol=0.1).fit(X, y)
kernel = SVC(max_iter=1, tol=0.5).fit(X[:2000], y[:2000])
hard = dict(C=100.0, tol=1e-14, max_iter=10**6)
problem = Problem(X, y, 1.0)
alpha = np.full(len(y), 0.5)
w = np.zeros(problem.width)

def again(work):
    def forever():
        while True:
            found = work()
            if getattr(found, "certificate_", None) is not None:
                if found.certificate_.status.label == "interrupted":
                    return found
            # A press just before a fit had its proof was that fit's: press again.
            if sent and time.perf_counter() - sent[-1] > 1.0:
                threading.Timer(0.03, press).start()
                time.sleep(0.02)
    return forever

def conversion():
    shutil.rmtree("made", ignore_errors=True)
    convert(["text"] * 200, "made", memory=2**20)

stages = {
    "dcd": lambda: LinearSVC(solver="dcd", **hard).fit(X, y),
    "interior point": again(
        lambda: LinearSVC(solver="interior-point", tol=1e-9).fit(X, y)
    ),
    "classes": lambda: LinearSVC(solver="dcd", n_jobs=2, **hard).fit(X, three),
    "checkpoint": lambda: LinearSVC(
        solver="dcd", checkpoint="file", checkpoint_every=1e-9, random_state=0, **hard
    ).fit(X, y),
    "stream": lambda: LinearSVC(solver="dcd", **hard).fit(small),
    "kernel": lambda: SVC(tol=1e-12, C=1e3).fit(X, y),
    "pairs": lambda: SVC(
        loss="squared_hinge", solver="fw", n_jobs=2, **hard
    ).fit(X[:2000], three[:2000]),
    "convert": again(conversion),
    "text": again(lambda: load_svmlight("text")),
    "predict": again(lambda: linear.predict(X)),
    "stream predict": again(lambda: linear.predict(small)),
    "kernel predict": again(lambda: kernel.decision_function(X)),
    "proof": again(lambda: problem.certify(w, alpha)),
    "write": again(lambda: save_model(linear, "model")),
}

def delays(outcomes):
    yield from map(float, sys.argv[2:])
    # Before it trains, a fit takes as long as the machine has little time for it.
    delay = 1.0
    while name in kept and "model kept" not in outcomes:
        yield delay
        delay *= 2

kept = {"dcd", "classes", "checkpoint", "stream", "kernel", "pairs"}
for name, stage in stages.items():
    outcomes = set()
    for delay in delays(outcomes):
        sent = []

        def press():
            sent.append(time.perf_counter())
            os.kill(os.getpid(), signal.SIGINT)

        timer = threading.Timer(delay, press)
        try:
            timer.start()
            found = stage()
        except KeyboardInterrupt:
            outcomes.add("KeyboardInterrupt")
        else:
            count = len(found.classes_)
            assert len(found.certificate_) == (count if count > 2 else 1)
            assert found.predict(X[:9]).shape == (9,)
            for c in found.certificate_:
                assert c.status.label == "interrupted", c
                assert c.primal >= c.dual
            outcomes.add("model kept")
        timer.join()
        waited = time.perf_counter() - sent[0]
        assert waited < 20.0, (name, waited)  # left alone, it takes minutes or for ever
        assert signal.getsignal(signal.SIGINT) is signal.default_int_handler
    print(name + ":", *sorted(outcomes))
known = {"store", "text", "model", "file", "made", ".made.converting"}
litter = set(os.listdir()) - known
assert not litter, litter
"""


@POSIX
def test_ctrl_c_at_every_stage(tmp_path):
    told = run(CTRL_C, tmp_path, 0.003, 0.05, 0.3)
    outcomes = dict(line.split(": ") for line in told.splitlines())
    assert len(outcomes) == 14
    for stage in ("dcd", "classes", "checkpoint", "stream", "kernel", "pairs"):
        assert "model kept" in outcomes.pop(stage), stage
    outcomes.pop("interior point")  # kept, or between two fits
    assert set(outcomes.values()) == {"KeyboardInterrupt"}, outcomes


# ------------------------------------------------------------------- files of old times


def test_pickles_of_other_versions_say_so_and_work():
    X, y = rows(classes=3)
    for model in (LinearSVC(), SVC()):
        model.fit(X, y)
        state = pickle.loads(pickle.dumps(model)).__getstate__()
        same = pickle.loads(pickle.dumps(model))
        assert np.array_equal(same.decision_function(X), model.decision_function(X))
        # Of a version that did not know a parameter yet.
        state["_dualgap_version"] = "0.0.1"
        del state["time_limit"]
        old = type(model).__new__(type(model))
        with pytest.warns(UserWarning, match=r"by dualgap 0\.0\.1, but dualgap"):
            old.__setstate__(state)
        assert old.get_params() == model.get_params()
        assert np.array_equal(old.decision_function(X), model.decision_function(X))
        old.fit(X, y)
        assert np.array_equal(old.classes_, model.classes_)
