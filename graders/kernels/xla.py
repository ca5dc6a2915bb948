"""How XLA compiles inside an examination: quickly, since a grader compiles much and computes little.

Comes in: the installed jaxlib. Goes out: a value for XLA_FLAGS. Must not: name a flag to a jaxlib that was not tried with
it, because XLA ends the process over a flag that it does not know.
"""

from __future__ import annotations

import platform
from importlib.metadata import PackageNotFoundError, version

# CPU-ms to compile on jaxlib 0.9.2, default -> with these: a masked sum 36 -> 14, a conditional 78 -> 15, its gradient
# 75 -> 16, an addition 34 -> 10. What is compiled runs slower: a sine over 4 million elements 25 -> 42 ms, a cumulative sum of
# them 23 -> 214 ms, a loop of 2000 tanh over 1000 elements 1 -> 19 ms; matrix products are libraries' and stay as they are.
_FAST_COMPILE = (
    "--xla_cpu_use_fusion_emitters=false",
    "--xla_llvm_disable_expensive_passes=true",
    "--xla_cpu_parallel_codegen_split_count=1",
    "--xla_backend_optimization_level=0",
    # 11 % less again, since LLVM goes through a processor's features for each program; the loop of tanh becomes 38 % slower
    *(("--xla_cpu_max_isa=AVX2",) if platform.machine() == "x86_64" else ()),
)
_TRIED = {"0.9.2": _FAST_COMPILE}  # 0.12 no longer has the first flag, and the other two alone gain nothing there


def flags() -> str:
    """The flags for the jaxlib that is installed; none for one that they were not tried with."""
    try:
        return " ".join(_TRIED.get(version("jaxlib"), ()))
    except PackageNotFoundError:
        return ""
