"""Laws of birth, seen from the client."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest
from kernel_pipes import FOLDER, Pipe

from graders.errors import InfrastructureError
from graders.kernels.nursery import Child, Limits, Nursery, Spawn, Zygote
from graders.kernels.sandbox import HELD_CACHE


def zombies() -> int:
    """Children of this process that were not reaped."""
    children = Path(f"/proc/self/task/{os.getpid()}/children").read_text().split()
    return sum(") Z " in Path(f"/proc/{pid}/stat").read_text() for pid in children)


def open_files(pid: int | str = "self") -> int:
    """Open descriptors of a process."""
    return len(list(Path(f"/proc/{pid}/fd").iterdir()))


def test_argument_files_and_status_cross(zygote: Zygote, level: str, pipe: Pipe) -> None:
    """A born process gets its argument and exactly its files, and its exit status comes back."""
    files = {"a.txt": b"1", "data/b.txt": b"2"}
    spawn = Spawn(entry="entries:hello", argument={"text": "hi"}, isolation=level, files=files)
    with zygote.spawn(spawn, [pipe.given]) as child:
        assert pipe.read().startswith(b"hi ['a.txt', 'data'] ")
        ended = child.wait(10)
    assert ended is not None
    assert (ended.kind, ended.code) == ("exit", 7)


@pytest.mark.parametrize("name", ["../a", "/tmp/a", "b/../../a", ""])
def test_files_stay_in_the_private_folder(zygote: Zygote, level: str, name: str) -> None:
    """A file name that leads out of the private folder is refused."""
    with pytest.raises(InfrastructureError, match="private folder"):
        zygote.spawn(Spawn(entry="entries:hello", isolation=level, files={name: b""}))


def test_seed_decides_random_numbers(zygote: Zygote, level: str) -> None:
    """The same seed gives the same random numbers, another seed others."""
    said = []
    for seed in (1, 1, 2):
        pipe = Pipe()
        with zygote.spawn(
            Spawn(entry="entries:hello", argument={"text": ""}, isolation=level, seed=seed), [pipe.given]
        ):
            said.append(pipe.read())
        os.close(pipe.reading)
    assert said[0] == said[1] != said[2]


def test_interrupt_reaches_the_first_process(zygote: Zygote, level: str, pipe: Pipe) -> None:
    """SIGINT is delivered although the process is the first of its namespace."""
    with zygote.spawn(Spawn(entry="entries:wait", isolation=level), [pipe.given]) as child:
        assert pipe.read() == b"ready"
        child.interrupt()
        assert pipe.read() == b"interrupted"


def test_still_running_is_none(zygote: Zygote, level: str, pipe: Pipe) -> None:
    """Waiting with a limit gives None while the process runs, and kill ends it."""
    with zygote.spawn(Spawn(entry="entries:wait", isolation=level), [pipe.given]) as child:
        assert child.wait(0.05) is None
        child.kill()
        ended = child.wait(10)
    assert ended is not None
    assert (ended.kind, ended.code) == ("signal", signal.SIGKILL)


def test_failing_entry_is_our_fault(zygote: Zygote, level: str) -> None:
    """An entry that raises before it opened is a failed set-up that carries the reason."""
    with zygote.spawn(Spawn(entry="entries:fail", isolation=level)) as child:
        ended = child.wait(10)
    assert ended is not None
    assert ended.kind == "setup_failed"
    assert "no such luck" in ended.text


def test_opened_process_cannot_forge_our_fault(zygote: Zygote, level: str) -> None:
    """Foreign code finds no way to report its own death as a failed set-up."""
    with zygote.spawn(Spawn(entry="entries:forge", isolation=level)) as child:
        ended = child.wait(10)
    assert ended is not None
    assert ended.kind in ("signal", "exit")  # the first of a namespace survives its own SIGKILL


def test_cpu_of_children_counts(zygote: Zygote, level: str) -> None:
    """CPU seconds of a child count, those of the zygote do not."""
    with zygote.spawn(Spawn(entry="entries:spin", argument={"seconds": 0.3}, isolation=level)) as child:
        ended = child.wait(30)
    assert ended is not None
    assert 0.3 <= ended.cpu_s < 0.6


def test_nothing_leaks(zygote: Zygote, level: str) -> None:
    """After many births neither we nor the zygote hold more descriptors or zombies than before."""
    spawn = Spawn(entry="entries:hello", argument={"text": ""}, isolation=level)
    zygote.spawn(Spawn(entry="entries:fail", isolation=level)).close()
    pid = zygote._process.pid
    before = open_files(), zombies(), open_files(pid)
    for _ in range(10):
        zygote.spawn(spawn).close()
    deadline = time.monotonic() + 5  # the zygote lets go of an ended warden when it gets to run
    while open_files(pid) > before[2] and time.monotonic() < deadline:
        time.sleep(0.01)
    assert (open_files(), zombies()) == before[:2]
    assert open_files(pid) <= before[2]


def test_threads_share_a_zygote(zygote: Zygote, level: str) -> None:
    """Births asked for by several threads at once are all served, each to its own asker."""
    exits: dict[int, int] = {}

    def bear(number: int) -> None:
        pipe = Pipe()
        spawn = Spawn(entry="entries:hello", argument={"text": str(number)}, isolation=level)
        with zygote.spawn(spawn, [pipe.given]) as child:
            exits[number] = int(pipe.read().split()[0])
            child.wait(10)
        os.close(pipe.reading)

    threads = [threading.Thread(target=bear, args=(number,)) for number in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(30)
    assert exits == {number: number for number in range(8)}


def test_what_is_born_runs_on_the_processor_of_its_nursery(zygote: Zygote, level: str) -> None:
    """A holder of the socket that names a processor has all its births bound to it; one that names none has not."""
    allowed = sorted(os.sched_getaffinity(0))
    spawn = Spawn(entry="entries:processors", isolation=level)
    for nursery, wanted in ((Nursery(zygote.control, allowed[-1]), allowed[-1:]), (zygote, allowed)):
        pipe = Pipe()
        with nursery.spawn(spawn, [pipe.given]) as child:
            child.wait(10)
        assert pipe.read() == str(wanted).encode()
        os.close(pipe.reading)


def test_a_warm_zygote_lends_nothing_that_runs_out(level: str, pipe: Pipe) -> None:
    """A process born of a zygote that JAX was warmed in compiles as often as it likes, each time what was asked for."""
    times = 40
    with Zygote(preload=("jax", "entries"), path=(FOLDER,)) as warm:
        spawn = Spawn(entry="entries:lower", argument={"times": times}, isolation=level)
        with warm.spawn(spawn, [pipe.given]) as child:
            child.wait(60)
    assert pipe.read() == str([4.0 + add for add in range(times)]).encode()


def test_lost_zygote_takes_all_along(level: str, pipe: Pipe) -> None:
    """When the zygote is killed, what it bore dies, is reported lost, and the next birth is refused as our fault."""
    with Zygote(preload=("entries",), path=(FOLDER,)) as mortal:
        spawn = Spawn(entry="entries:daemons", argument={"wait": True}, isolation=level)
        child: Child = mortal.spawn(spawn, [pipe.given])
        assert pipe.read() == b"left"
        os.kill(mortal._process.pid, signal.SIGKILL)
        ended = child.wait(10)
        assert ended is not None
        assert ended.kind == "lost"
        assert pipe.read() == b""
        mortal._process.wait(10)
        assert not mortal.alive
        with pytest.raises(InfrastructureError, match="zygote"):
            mortal.spawn(spawn)
        child.close()


def test_unknown_preload_is_told() -> None:
    """A module that cannot be imported is named in the error."""
    with Zygote(preload=("no_such_module",)) as broken, pytest.raises(InfrastructureError, match="no_such_module"):
        broken.spawn(Spawn(entry="builtins:print", isolation="process"))


def test_what_only_warms_keeps_nobody_from_grading(tmp_path: Path) -> None:
    """A library that is imported beforehand and finds no folder of its own writable, as matplotlib may, is left for later."""
    (tmp_path / "matplotlib_inline").mkdir()
    (tmp_path / "matplotlib_inline" / "__init__.py").write_text("raise OSError('no writable folder')")
    code = f"import sys; sys.path.insert(0, {str(tmp_path)!r}); import graders.kernels.kernel"
    subprocess.run([sys.executable, "-c", code], check=True, timeout=60)


def test_backend_in_zygote_is_refused() -> None:
    """A zygote in which a JAX backend runs must not fork: the fork would hang."""
    folder = str(Path(__file__).parent / "hostile_preload")
    with (
        Zygote(preload=("starts_backend",), path=(folder,)) as unfit,
        pytest.raises(InfrastructureError, match="backend"),
    ):
        unfit.spawn(Spawn(entry="builtins:print", isolation="process"))


def test_cache_is_read_only_unless_told(zygote: Zygote, level: str, tmp_path: Path) -> None:
    """Only the instructor's own run may write the compile cache."""
    tmp_path.chmod(0o777)
    cache = tmp_path / "cache"
    cache.mkdir()
    cache.chmod(0o777)
    place = None if level == "namespaces" else HELD_CACHE
    for writable, wanted in ((False, {b"OSError", b"PermissionError"}), (True, {b"written"})):
        pipe = Pipe()
        spawn = Spawn(
            entry="entries:cache",
            argument={"place": place},
            isolation=level,
            cache=str(cache),
            cache_writable=writable,
            limits=Limits(),
        )
        with zygote.spawn(spawn, [pipe.given]):
            assert pipe.read() in wanted
        os.close(pipe.reading)
