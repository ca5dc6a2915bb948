"""Laws of the kernels that jupyter_client and nbclient start behind walls."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import nbformat
import pytest
from jupyter_client.manager import KernelManager
from nbclient import NotebookClient

from graders.kernels.nursery import best_level

NOTEBOOK = Path(__file__).parent / "files" / "jax.ipynb"


class Session:
    """One kernel and its client."""

    def __init__(self, **options: Any) -> None:
        self.manager = KernelManager(kernel_name="graders-sandbox")
        self.manager.start_kernel(spawn_options=options)
        self.client = self.manager.blocking_client()
        self.client.start_channels()
        self.client.wait_for_ready(timeout=30)

    def run(self, code: str) -> str:
        """Everything that a cell shows, as text."""
        shown: list[str] = []

        def keep(message: dict[str, Any]) -> None:
            content = message["content"]
            shown.append(content.get("text") or content.get("ename") or content.get("data", {}).get("text/plain", ""))

        self.client.execute_interactive(code, timeout=60, output_hook=keep)
        return "".join(shown)

    def close(self) -> None:
        """End it."""
        self.client.stop_channels()
        self.manager.shutdown_kernel(now=True)


@pytest.fixture
def start(level: str) -> Iterator[Callable[..., Session]]:
    """Starts kernels at a level, and ends them."""
    sessions: list[Session] = []

    def begin(**options: Any) -> Session:
        sessions.append(Session(**{"isolation": level, "files": {}} | options))
        return sessions[-1]

    yield begin
    for session in sessions:
        session.close()


def test_notebook_runs_through_nbclient(tmp_path: Path) -> None:
    """A real notebook with JAX runs through plain nbclient at the best level of this machine."""
    notebook = nbformat.read(NOTEBOOK, as_version=4)
    (tmp_path / "numbers.txt").write_text("1 2 3")
    client = NotebookClient(
        notebook, kernel_name="graders-sandbox", timeout=60, resources={"metadata": {"path": str(tmp_path)}}
    )
    client.execute()
    assert notebook.cells[-1].outputs[0]["text"] == f"6.0 [2. 4. 6.] {best_level()}\n"
    assert [path.name for path in tmp_path.iterdir()] == ["numbers.txt"]


def test_any_client_is_told_that_a_cell_has_begun(start: Callable[..., Session]) -> None:
    """A kernel that is not a candidate says "busy", what it runs, and "idle", as every kernel does."""
    heard: list[dict[str, Any]] = []
    start().client.execute_interactive("six = 6", timeout=60, output_hook=heard.append)
    kinds = [message["content"].get("execution_state", message["content"].get("code")) for message in heard]
    assert kinds == ["busy", "six = 6", "idle"]


def test_jax_runs_quietly(start: Callable[..., Session]) -> None:
    """JAX computes on the CPU and writes nothing but what the cell prints."""
    assert start().run("import jax\nprint(jax.jit(lambda x: x + 1)(1), jax.devices()[0].platform)") == "2 cpu\n"


def test_output_of_programs_is_shown(start: Callable[..., Session]) -> None:
    """`!command`, os.system and prints at descriptor level are captured."""
    session = start()
    assert session.run("!echo one") == "one\n"
    assert "two" in session.run("import os, time\nos.system('echo two'); time.sleep(0.2)")


def test_interrupt_stops_a_cell(start: Callable[..., Session]) -> None:
    """An endless loop is interrupted, and the kernel lives on with its names."""
    session = start()
    session.run("kept = 5")
    session.client.execute("while True: pass")
    time.sleep(0.3)
    session.manager.interrupt_kernel()
    assert session.client.get_shell_msg(timeout=10)["content"]["ename"] == "KeyboardInterrupt"
    assert session.run("print(kept)") == "5\n"


def test_restart_keeps_the_client(start: Callable[..., Session]) -> None:
    """A restarted kernel is new, and the same client reaches it."""
    session = start()
    session.run("kept = 5")
    session.manager.restart_kernel(now=True)
    session.client.wait_for_ready(timeout=30)
    assert "NameError" in session.run("kept")


@pytest.mark.parametrize(
    ("code", "kind"),
    [("import os; os._exit(3)", "exit"), ("x = [bytearray(b'x') * 2**26 for _ in range(12)]", "memory")],
)
def test_death_has_a_kind(start: Callable[..., Session], code: str, kind: str) -> None:
    """A kernel that ends itself and one that took too much memory end differently."""
    from graders.kernels.nursery import Limits

    session = start(limits=Limits(memory_bytes=600 * 2**20))
    session.client.execute(code)
    ended = session.manager.provisioner.child.wait(20)
    assert ended is not None
    assert ended.kind == kind


def test_nothing_outside_is_written(start: Callable[..., Session], tmp_path: Path) -> None:
    """A kernel leaves no profile, history or connection socket behind."""
    session = start(files={"a.txt": b"1"})
    assert session.run("import os; print(sorted(os.listdir()))") == "['a.txt']\n"
    folder = session.manager.provisioner._folder
    assert folder is not None
    assert Path(folder).stat().st_mode & 0o777 == 0o700
    session.client.stop_channels()
    session.manager.shutdown_kernel(now=True)
    assert not Path(folder).exists()


def test_a_module_beside_the_notebook_is_imported(start: Callable[..., Session]) -> None:
    """A student's own Python file is a module, as in Jupyter, and never stands before the standard library."""
    session = start(files={"model.py": b"double = lambda v: 2 * v\n", "colorsys.py": b"raise RuntimeError\n"})
    assert session.run("import model, colorsys; print(model.double(21), colorsys.__name__)") == "42 colorsys\n"


def test_printing_children_do_not_disturb(start: Callable[..., Session]) -> None:
    """A forked child that prints neither hangs nor speaks on its parent's socket."""
    # Python 3.12 and newer warn of a fork beside threads
    code = "import os, warnings\nwarnings.simplefilter('ignore')\nif os.fork() == 0:\n    print('child', flush=True)\n    os._exit(0)\nos.wait()\nprint('parent')"
    assert start().run(code).endswith("parent\n")


def test_cache_serves_a_second_kernel(start: Callable[..., Session], level: str, tmp_path: Path) -> None:
    """What the instructor's run compiled is read by a candidate, which cannot add to it and does not complain."""
    cache = tmp_path / "cache"
    cache.mkdir()
    for folder in (cache, *cache.parents[:3]):
        folder.chmod(0o777)
    code = "import jax, jax.numpy as jnp\nf = jax.jit(lambda x: jnp.sin(x) @ x)\nprint(f(jnp.ones((4, 4))).sum())"
    first = start(cache=str(cache), cache_writable=True).run(code)
    names = sorted(path.name for path in cache.iterdir())
    assert names
    assert start(cache=str(cache)).run(code + "\ng = jax.jit(lambda x: x * 3)(2.0)") == first
    assert sorted(path.name for path in cache.iterdir()) == names
    assert os.environ.get("JAX_COMPILATION_CACHE_DIR") is None
