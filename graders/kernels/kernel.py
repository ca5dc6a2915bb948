# mypy: disable-error-code="no-untyped-call"
"""A real ipykernel as the entry of a born process.

Comes in: connection settings and five listening sockets, bound outside by the client; more descriptors for the hook.
Goes out: nothing. Must not: bind, connect or write anywhere outside the private folder.
"""

from __future__ import annotations

import contextlib
import importlib
import sys
from typing import Any

import zmq
from ipykernel import debugger, ipkernel, kernelapp
from ipykernel.control import ControlThread
from ipykernel.heartbeat import Heartbeat
from ipykernel.iostream import IOPubThread
from IPython.core import ultratb
from IPython.core.profiledir import ProfileDir
from traitlets.config import Config

from graders.kernels import birth, lean
from graders.kernels.births import CHANNELS

_ERRORS_ONLY = 40

# What ipykernel, IPython and jax import at first use, so that the zygote pays for it once: 60 ms of CPU for each kernel
# that shows a traceback.
_LAZY = (
    "IPython.core.completerlib",
    "IPython.core.debugger",
    "IPython.core.logger",
    "IPython.core.magics.execution",
    "IPython.core.oinspect",
    "IPython.extensions.storemagic",
    "faulthandler",
    "jax.experimental.multihost_utils",
    "jaxlib.mlir.dialects.builtin",
    "jaxlib.mlir.dialects.mhlo",
    "matplotlib_inline.backend_inline",
    "numpy.testing",
    "pwd",
    "pygments.formatters.terminal256",
    "pygments.lexers.python",
    "pygments.styles.default",
    "stack_data",
    "tornado.platform.asyncio",
    "unittest.main",
)

for _name in _LAZY:
    with contextlib.suppress(ImportError, OSError):  # the second is matplotlib, where no folder of its own is writable
        importlib.import_module(_name)


def _show_an_error() -> None:
    """Show one, so that Python has specialised what does it: 95 ms of CPU for the first in a process, then 25."""
    try:
        exec(compile("def fail():\n    raise ValueError\n\nfail()", "<an error>", "exec"), {})
    except ValueError as error:
        ultratb.FormattedTB(mode="Context").structured_traceback(type(error), error, error.__traceback__)


_show_an_error()

# The debugger would start threads and sockets, and a candidate needs none.
debugger._is_debugpy_available = False


class _Output(IOPubThread):
    """ipykernel's output thread, silent in forked children: a ZeroMQ socket serves one process only."""

    def _really_send(self, *message: Any, **options: Any) -> None:
        if self._is_master_process():
            super()._really_send(*message, **options)


class _Heart(Heartbeat):
    """A heartbeat on a socket that is already bound."""

    listening = -1

    def _try_bind_socket(self) -> None:
        _take(self.socket, self.listening)


class _Kernel(ipkernel.IPythonKernel):
    """ipykernel without a debugger to poll. Its client sends a cell only after the last has ended."""

    _supports_kernel_subshells = False  # those need the thread for which lean.NoShellThread stands

    def __init__(self, **options: Any) -> None:
        with lean.unaware_of_modules():
            super().__init__(**options)

    async def poll_stopped_queue(self) -> None:
        return

    def _abort_queues(self, subshell_id: str | None = None) -> None:
        """After an error ipykernel drops what is queued, and by a race what comes next; nothing is ever queued here."""


class SandboxKernelApp(kernelapp.IPKernelApp):
    """IPKernelApp on sockets that it was given. It reads no profile or command line and writes no connection file."""

    kernel_class = _Kernel
    connection: Any
    listening: dict[str, int]

    def parse_command_line(self, argv: Any = None) -> None:
        """There is none; building ipykernel's parser alone takes 20 ms."""

    def init_config_files(self) -> None:
        """No file of this machine configures a candidate."""

    def load_config_file(self, *ignored: Any, **options: Any) -> None:
        """No file of this machine configures a candidate."""

    def init_profile_dir(self) -> None:
        """IPython wants a profile: an empty one in the private folder."""
        location = f"{self.ipython_dir}/profile_default"
        self.profile_dir = ProfileDir.create_profile_dir(location)

    def init_path(self) -> None:
        """Put the folder beside the notebook after the standard library; IPython leaves it out, since the zygote has -P."""
        first = next((n for n, path in enumerate(sys.path) if path.endswith("-packages")), len(sys.path))
        sys.path.insert(first, "")

    def init_connection_file(self) -> None:
        """The settings came as an argument."""
        self.load_connection_info(self.connection)

    def write_connection_file(self, **ignored: Any) -> None:
        """The client has the settings."""

    def init_poller(self) -> None:
        """The warden ends this process with its client; nothing is to be polled."""

    def log_connection_info(self) -> None:
        """Nobody connects by hand."""
        self._ports = {name: getattr(self, f"{name}_port") for name in CHANNELS}

    def _try_bind_socket(self, socket: Any, port: int) -> int:
        # IPKernelApp only tells us the port; each channel has its own number, given by the client.
        channel = next(name for name in CHANNELS if self.connection[f"{name}_port"] == port)
        _take(socket, self.listening[channel])
        return port

    def init_control(self, context: Any) -> None:
        """As in IPKernelApp, but the debugger's sockets stay unconnected."""
        self.control_socket = context.socket(zmq.ROUTER)
        self.control_socket.linger = 1000
        self.control_port = self._bind_socket(self.control_socket, self.control_port)
        self.control_socket.router_handover = 1
        self.debugpy_socket = context.socket(zmq.STREAM)
        self.debug_shell_socket = context.socket(zmq.DEALER)
        self.control_thread = ControlThread(daemon=True)
        self.shell_channel_thread = lean.NoShellThread()

    def init_iopub(self, context: Any) -> None:
        """As in IPKernelApp, but without the TCP port through which forked children would print."""
        self.iopub_socket = context.socket(zmq.XPUB)
        self.iopub_socket.linger = 1000
        self.iopub_port = self._bind_socket(self.iopub_socket, self.iopub_port)
        self.configure_tornado_logger()
        self.iopub_thread = _Output(self.iopub_socket, pipe=False, session=self.session)
        self.iopub_thread.start()
        self.iopub_socket = self.iopub_thread.background_socket

    def init_heartbeat(self) -> None:
        """As in IPKernelApp, on the given socket."""
        self.heartbeat = _Heart(zmq.Context(), (self.transport, self.ip, self.hb_port))
        self.heartbeat.listening = self.listening["hb"]
        self.heartbeat.start()


def _leave() -> None:
    raise SystemExit


def _take(socket: Any, descriptor: int) -> None:
    # With USE_FD set ZeroMQ listens on the descriptor and never looks at the address.
    socket.setsockopt(zmq.USE_FD, descriptor)
    socket.bind("ipc:///given")


def main(argument: dict[str, Any], fds: list[int]) -> None:
    """Run a kernel until it is shut down.

    `argument` has "connection" and may have "outstream", the class of its stdout and stderr, and "hook", a
    "module:function" called with the application, the further descriptors and "options".
    """
    config = Config()
    config.HistoryManager.enabled = False
    app = SandboxKernelApp.instance(config=config, log_level=_ERRORS_ONLY)
    app.connection = argument["connection"]
    app.listening = dict(zip(CHANNELS, fds, strict=False))
    if argument.get("outstream"):
        app.outstream_class = argument["outstream"]
    app.initialize([])
    app.log.setLevel(_ERRORS_ONLY)  # traitlets holds back what is lower only once each line of it is made
    shell: Any = app.shell
    shell.ask_exit = _leave  # `quit()` would end the kernel a moment later, during another cell
    shell.system = shell.system_raw  # `!command` through a pty would fork this many-threaded process
    lean.tune(shell)
    if argument.get("hook"):
        module, _, function = argument["hook"].partition(":")
        getattr(importlib.import_module(module), function)(app, fds[len(CHANNELS) :], argument.get("options") or {})
    birth.opened()
    app.start()
