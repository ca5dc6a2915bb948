"""The instructor's own run of an assignment: what its checks are, that they can be passed, and the compile caches.

Comes in: an `Assignment`. Goes out: a `Reference`, kept once per version below `.graders/`. Must not: let the solution
run where its compiled programs would land in the cache that candidates read.
"""

from __future__ import annotations

import hashlib
import platform
import shutil
from collections.abc import Iterable
from decimal import Decimal
from importlib.metadata import version
from pathlib import Path

import msgspec

from graders.coursework import Assignment, Reference, ReleasedCell, Role, Submission, SubmittedCell
from graders.errors import CourseError
from graders.exam import plan
from graders.exam.bindings import defined
from graders.exam.pair import Conditions
from graders.exam.session import examine
from graders.kernels import xla
from graders.kernels.nursery import Zygote
from graders.records import Outcome
from graders.results.folders import write_file
from graders.runs import Ended, Run

# Operations that take arrays and no function, as a cached program names them; `cond`, `scan` or `reduce` would hold one.
_PLAIN_OPERATIONS = frozenset(
    """
    abs absolute add all amax amin any append arange arccos arcsin arctan arctan2 argmax argmin argsort around array astype
    atan2 average bitcast_convert_type bitwise_and bitwise_not bitwise_or bitwise_xor broadcast_in_dim broadcast_to cbrt
    ceil clamp clip concatenate convert_element_type copy cos cosh count_nonzero cummax cummin cumprod cumsum diag diagonal
    diff div divide dot dot_general dynamic_slice dynamic_update_slice eig eigh einsum eq equal erf exp exp2 expand_dims
    expm1 eye fabs flip floor floor_divide fmax fmin full full_like gather ge greater greater_equal gt histogram hypot
    identity imag integer_pow inv iota isclose isfinite isinf isnan le less less_equal linspace log log10 log1p log2
    log_softmax logaddexp logical_and logical_not logical_or logical_xor logistic logsumexp lt matmul max maximum mean
    median min minimum mod moveaxis mul multiply nan_to_num nanmax nanmean nanmin nansum ne neg negative norm not_equal
    one_hot ones ones_like outer pad percentile polyval positive pow power prod qr quantile ravel real reciprocal reduce_and
    reduce_max reduce_min reduce_or reduce_prod reduce_sum relu rem remainder repeat reshape rev roll round rsqrt scatter
    scatter_add searchsorted select_n sigmoid sign sin sinh slice softmax softplus solve sort split sqrt square squeeze
    stack std sub subtract sum svd swapaxes take take_along_axis tan tanh tensordot tile top_k trace transpose tri tril triu
    true_divide trunc unique var vdot where zeros zeros_like
    """.split()  # noqa: SIM905  (a list would fill 190 lines)
)


def establish(course: Path, assignment: Assignment, conditions: Conditions, zygote: Zygote) -> Reference:
    """The reference of this version of an assignment, from disk or by running the solution now.

    Raises:
        CourseError: the solution does not get full marks from its own tests; the text says which check fails and how.
    """
    found = known(course, assignment)
    if found is not None:
        return found
    caches = cache_folders(course, assignment)
    _open_caches(caches.values())
    filling = msgspec.structs.replace(conditions, fill_caches=True, candidate_cache=None, examiner_cache=None)
    solving = _with(filling, candidate_cache=caches["solution"], examiner_cache=caches["examiner"])
    found = run_solution(assignment, solving, zygote)
    # many an answer leaves jax.jit out: its operations are compiled one by one
    solve(assignment, msgspec.structs.replace(solving, unjitted=True, examiner_cache=None), zygote)
    _share_plain_programs(assignment, caches["solution"], caches["candidate"])
    blank = _handed_in(assignment, [cell.released for cells in assignment.notebooks.values() for cell in cells], {})
    examine(plan.seal(assignment, blank), _with(filling, candidate_cache=caches["candidate"]), zygote)
    for folder in caches.values():
        folder.chmod(0o755)
    shutil.rmtree(caches["solution"])
    write_file(_path(course, assignment), msgspec.json.encode(found))
    return found


def known(course: Path, assignment: Assignment) -> Reference | None:
    """The reference of this version, if it was established here before and its caches are still there."""
    path, caches = _path(course, assignment), cache_folders(course, assignment)
    if not path.is_file() or not all(caches[role].is_dir() for role in ("candidate", "examiner")):
        return None
    return msgspec.json.decode(path.read_bytes(), type=Reference)


def _path(course: Path, assignment: Assignment) -> Path:
    return course / ".graders" / "reference" / f"{assignment.sha256}.json"


def _open_caches(folders: Iterable[Path]) -> None:
    """Make the folders anew. While they are filled, whoever the sandbox runs as may write; the folder above is private."""
    for folder in folders:
        shutil.rmtree(folder, ignore_errors=True)
        folder.parent.parent.mkdir(parents=True, exist_ok=True)
        folder.parent.parent.chmod(0o700)
        folder.mkdir(parents=True)
        folder.chmod(0o777)


def _share_plain_programs(assignment: Assignment, solution: Path, candidate: Path) -> None:
    """Let candidates have the programs of plain JAX operations that the solution compiled.

    A program's file is named after its function; what the author defines under such a name stays behind.
    """
    cells = (cell for cells in assignment.notebooks.values() for cell in cells if cell.cell_type == "code")
    authors = [cell.source for cell in cells] + [one.source for one in assignment.answer_files.values()]
    theirs = frozenset().union(*map(defined, authors))
    for path in solution.iterdir():
        name = path.name.removeprefix("jit_").rpartition("-cache")[0].rpartition("-")[0]
        if name.lstrip("_") in _PLAIN_OPERATIONS and name not in theirs:
            shutil.copyfile(path, candidate / path.name)


def run_solution(assignment: Assignment, conditions: Conditions, zygote: Zygote) -> Reference:
    """Examine the author's own notebook. Raises `CourseError` when it does not get full marks."""
    return reference_of(assignment, solve(assignment, conditions, zygote))


def solve(assignment: Assignment, conditions: Conditions, zygote: Zygote) -> Run:
    """What happens when the author's own notebook is examined."""
    files = {path: one.source.encode() for path, one in assignment.answer_files.items()}
    solved = _handed_in(assignment, [cell.source for cells in assignment.notebooks.values() for cell in cells], files)
    return examine(plan.seal(assignment, solved), conditions, zygote)


def cache_folders(course: Path, assignment: Assignment) -> dict[str, Path]:
    """Where compiled programs are kept: for this version, these libraries and flags, and this kind of processor only."""
    libraries = [version("jax"), version("jaxlib"), platform.python_version(), xla.flags()]
    parts = [assignment.sha256, *libraries, _processor()]
    key = hashlib.sha256("\0".join(parts).encode()).hexdigest()[:24]
    return {role: course / ".graders" / "cache" / key / role for role in ("candidate", "examiner", "solution")}


def with_caches(conditions: Conditions, course: Path, assignment: Assignment) -> Conditions:
    """The conditions of a student's examination: both caches, read-only."""
    caches = cache_folders(course, assignment)
    return _with(conditions, candidate_cache=caches["candidate"], examiner_cache=caches["examiner"])


def reference_of(assignment: Assignment, run: Run) -> Reference:
    """What a run of the solution establishes. Raises `CourseError` when it does not get full marks."""
    cells = {cell.id: cell for cells in assignment.notebooks.values() for cell in cells if cell.role is Role.test}
    tests = {test.id: test for test in run.tests}
    problems = [
        f"cell {cell.id or cell.position}: {why}"
        for cell in run.cells
        if (why := cell.reason or (cell.problem and f"{cell.problem.name}: {cell.problem.message}"))
    ]
    partial = []
    for identity, cell in cells.items():
        test = tests.get(identity or "")
        if test is None or cell.cell_type != "code":
            continue
        problems += [
            f"check {one.title!r} of {identity}: {one.message}" for one in test.checks if one.outcome is Outcome.failed
        ]
        if test.ended is not Ended.ok:
            problems.append(
                f"test {identity}: {test.reason or (test.problem and test.problem.traceback) or test.ended.value}"
            )
        total = sum((one.points for one in test.checks), Decimal(0))
        if test.checks and total != cell.points:
            problems.append(f"the checks of {identity} are worth {total} points, the cell {cell.points}")
        if test.number is not None and not test.checks:
            partial.append(test.id)
            problems += _short(cell, test.number)
    if problems:
        told = "\n  ".join(problems)
        raise CourseError(
            f"The solution of {assignment.name!r} does not get full marks from its own tests:\n  {told}\n"
            f"Wanted: every test passes on source/{assignment.name}. Next step: mend the solution or the test, then release. "
            "A test that deletes or replaces a name of the notebook, to see who uses it, changes nothing from outside: mend "
            'it, or set c.Graders.examine = "kernel" for the course.'
        )
    return Reference(assignment.sha256, {test.id: test.checks for test in run.tests}, tuple(partial))


def _short(cell: ReleasedCell, number: Decimal) -> list[str]:
    return [] if number == cell.points else [f"{cell.id} ends in {number}, and the cell is worth {cell.points} points"]


def _handed_in(assignment: Assignment, sources: list[str], files: dict[str, bytes]) -> Submission:
    texts = iter(sources)
    notebooks = {
        name: tuple(SubmittedCell(cell.cell_type, next(texts), cell.id) for cell in cells)
        for name, cells in assignment.notebooks.items()
    }
    return Submission("reference", assignment.name, notebooks, files)


def _with(conditions: Conditions, **caches: Path) -> Conditions:
    return msgspec.structs.replace(conditions, **{name: str(path) for name, path in caches.items()})


def _processor() -> str:
    """The processor's features: compiled programs are machine code for one kind of it."""
    try:
        lines = Path("/proc/cpuinfo").read_text().splitlines()
    except OSError:
        return platform.processor()
    return next((line for line in lines if line.startswith(("flags", "Features"))), platform.processor())
