"""Locks on paths: one writer at a time, and none that outlives its process."""

import errno
import os
import signal
import subprocess
import sys
import threading

import pytest

from dualgap.data import lock
from dualgap.data.lock import locked

HOLD = """
import sys
from dualgap.data.lock import locked
with locked(sys.argv[1], "path"):
    print("held", flush=True)
    sys.stdin.read()
"""


@pytest.fixture
def other(tmp_path):
    """A process that holds the lock of ``tmp_path/x``."""
    process = subprocess.Popen(
        [sys.executable, "-c", HOLD, str(tmp_path / "x")],
        stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
    )  # fmt: skip
    assert process.stdout.readline() == "held\n"
    with process:
        yield process
        process.kill()


def test_another_process_is_named_and_its_death_is_enough(tmp_path, other):
    path = str(tmp_path / "x")
    told = f"x is being written by process {other.pid};"
    with pytest.raises(ValueError, match=told), locked(path, "x"):
        pass
    with locked(str(tmp_path / "y"), "y") as alone:  # another path
        assert alone
    if hasattr(signal, "SIGKILL"):
        other.send_signal(signal.SIGKILL)
    else:
        other.kill()
    other.wait()
    with locked(path, "x") as alone:
        assert alone
    assert os.listdir(tmp_path) == []


def test_another_thread_is_refused_too(tmp_path):
    path, found = str(tmp_path / "x"), []

    def second():
        try:
            with locked(path, "x"):
                found.append("locked")
        except ValueError as error:
            found.append(str(error))

    with locked(path, "x"):
        thread = threading.Thread(target=second)
        thread.start()
        thread.join()
    assert "another thread of this process" in found[0]
    assert str(os.getpid()) in found[0]
    second()
    assert found[1] == "locked"
    assert os.listdir(tmp_path) == []


def test_of_many_threads_one_at_a_time_is_inside(tmp_path):
    """The file comes and goes all the time: none locks one that is gone already."""
    path, inside, most = str(tmp_path / "x"), [], []

    def work():
        for _ in range(40):
            done = False
            while not done:
                try:
                    with locked(path, "x"):
                        inside.append(1)
                        most.append(len(inside))
                        inside.pop()
                        done = True
                except ValueError:
                    pass

    threads = [threading.Thread(target=work) for _ in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert set(most) == {1}
    assert len(most) == 6 * 40
    assert os.listdir(tmp_path) == []


def test_long_names_have_locks_of_their_own(tmp_path):
    one, two = (str(tmp_path / ("n" * 250 + end)) for end in "ab")
    with locked(one, "one"):
        with locked(two, "two"):
            pass
        told = "one is being written"
        with pytest.raises(ValueError, match=told), locked(one, "one"):
            pass
    assert os.listdir(tmp_path) == []


def test_a_link_in_the_place_of_the_lock_is_not_followed(tmp_path):
    if not hasattr(os, "O_NOFOLLOW"):
        pytest.skip("a flag of POSIX")
    (tmp_path / "victim").write_text("precious")
    (tmp_path / ".x.lock").symlink_to(tmp_path / "victim")
    path = str(tmp_path / "x")
    with pytest.raises(OSError, match=r"\.x\.lock"), locked(path, "x"):
        pass
    assert (tmp_path / "victim").read_text() == "precious"


def test_file_systems_without_locks(tmp_path, monkeypatch, caplog):
    def refuse(handle):
        raise OSError(errno.ENOLCK, "No locks available")

    monkeypatch.setattr(lock, "_lock", refuse)
    with locked(str(tmp_path / "x"), "x") as alone:
        assert not alone
    assert "x: this file system has no locks (No locks available)" in caplog.text
