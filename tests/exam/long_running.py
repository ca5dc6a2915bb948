"""Whatever a cell does to its process, the cells before and after it keep their points: by hand, `make test-long`."""

from __future__ import annotations

import pytest
from test_session import Examine, conditions, exercises, passed, right, run, zygote

__all__ = ["conditions", "run", "zygote"]  # fixtures

ODD = {
    "counts": "import itertools\nsum(itertools.count())",
    "regex": "import re\nre.match(r'(a+)+$', 'a'*40+'b')",
    "large_power": "x = 10**(10**8)\ny = x*x",
    "long_number": "str(7**(10**7))",
    "lock": "import threading\nl=threading.Lock(); l.acquire(); l.acquire()",
    "join": "import threading\nt=threading.Thread(target=lambda: [None for _ in iter(int,1)]); t.start(); t.join()",
    "ignores": "import signal\nsignal.signal(signal.SIGINT, signal.SIG_IGN)\nwhile True: pass",
    "masks": "import signal\nsignal.pthread_sigmask(signal.SIG_BLOCK, signal.valid_signals())\nwhile True: pass",
    "abort": "import os\nos.abort()",
    "faults": "import faulthandler\nfaulthandler._sigsegv()",
    "deep": "import sys\nsys.setrecursionlimit(10**9)\ndef f(n): return f(n+1)+1\nf(0)",
    "deep_python": "def g(n): return g(n+1)+1\ng(0)",
    "allocates": "b = bytearray(10**12)",
    "fills_numpy": "import numpy as np\na = np.ones(10**9)\nb=[a.copy() for _ in range(50)]",
    "fills_jax": "import jax.numpy as jnp\na = jnp.ones((60000, 60000)).block_until_ready()",
    "disk": "with open('big','wb') as f:\n    for _ in range(10**5): f.write(b'x'*2**20)",
    "files": "for i in range(10**6): open(f'f{i}','w').close()",
    "fork": "import os\nwhile True: os.fork()",
    "threads": "import threading,time\nts=[]\nwhile True:\n    t=threading.Thread(target=time.sleep,args=(100,)); t.start(); ts.append(t)",
    "sockets": "import socket\nss=[socket.socket() for _ in range(10**5)]",
    "pipes": "import os\nps=[os.pipe() for _ in range(10**5)]",
    "awaits": "import asyncio\nawait asyncio.sleep(1000)",
    "spins": "import asyncio\nasync def spin():\n    while True: await asyncio.sleep(0)\nawait spin()",
    "background": "import asyncio\nasync def later():\n    while True:\n        await asyncio.sleep(0.01)\n        print('x')\nasyncio.ensure_future(later())\nbackground=1",
    "atexit": "import atexit, time\natexit.register(time.sleep, 1000)\natexit=1",
    "finalizer": "import gc\nclass A:\n    def __del__(self):\n        while True: pass\na=A(); del a",
    "setitimer": "import signal\nsignal.setitimer(signal.ITIMER_REAL, 0.001, 0.001)\nwhile True: pass",
    "kills_group": "import os\nos.kill(0, 9)",
    "kills_all": "import os\nos.kill(-1, 9)",
    "replaces": "import os\nos.execv('/bin/sh', ['sh','-c','sleep 1000'])",
    "moves": "%cd /\nmoves=1",
    "installs": "!pip install -U jax\ninstalls=1",
    "unknown": "%nosuch\nunknown=1",
    "shadows": "sum = 0; len = 3; print = None; shadows=1",
    "closes_streams": "import sys, os\nsys.stdout.close(); os.close(1); os.close(2)\ncloses_streams=1",
    "closes_all": "import os\nos.closerange(0,300)\ncloses_all=1",
    "stops_kernel": "get_ipython().kernel.do_shutdown(False)\nstops_kernel=1",
    "stops_loop": "import asyncio\nasyncio.get_event_loop().stop()\nstops_loop=1",
    "breaks_loop": "from tornado.ioloop import IOLoop\nIOLoop.current().add_callback(lambda: 1/0)\nbreaks_loop=1",
    "no_imports": "import builtins\nbuiltins.__import__=None\nno_imports=1",
    "resets": "%reset -f\nresets=1",
    "exits": "import sys\nsys.exit(0)",
}


@pytest.mark.parametrize("name", ODD)
def test_only_the_exercise_that_did_it_is_lost(run: Examine, name: str) -> None:
    """Loops, deaths, floods of memory, files and processes, and what stops the kernel cost no other exercise."""
    found = run(exercises("before", name, "last"), right("before", "last") | {name: ODD[name]}, cell_timeout_s=6.0)
    assert {"before", "last"} <= passed(found)
