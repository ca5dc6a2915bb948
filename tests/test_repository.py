"""Laws of the repository itself: its environments agree, its words are its own, and its imports go one way."""

from __future__ import annotations

import ast
import functools
import graphlib
import re
import shutil
import subprocess
import sys
import tomllib
from importlib.metadata import distribution
from pathlib import Path

import pytest
import yaml
from jupyter_client.kernelspec import KernelSpecManager

ROOT = Path(__file__).resolve().parents[1]
PACKAGE = ROOT / "graders"

# Each third-party library and the modules that may import it; a name that ends in / is a room, / alone is everyone.
# More than one owner needs a reason.
OWNERS = {
    "IPython": (
        "kernels/kernel.py",
        "exam/bindings.py",
        "bench/floor.py",
    ),  # its shell; its cell syntax; its shell and nothing else
    "cryptography": ("results/receipts.py",),
    "distributed": ("run/cluster.py",),
    "filelock": ("run/locks.py",),
    "flatbuffers": (),  # jax.export needs it at run time
    # kernel, what it leaves out, its warm-up, its output stream
    "ipykernel": ("kernels/kernel.py", "kernels/lean.py", "kernels/zygote.py", "exam/capped.py"),
    "jax": (
        "exam/",
        "kernels/warm.py",
        "bench/floor.py",
    ),  # the examination speaks it; the zygote traces with it; the least there could be
    "jinja2": ("results/pages.py",),
    "jupyter_client": ("kernels/provisioner.py", "kernels/client.py"),  # one starts kernels, the other talks to them
    "jupyterlab": (),  # started by `make lab`
    "matplotlib": ("bench/picture.py",),
    "ml_dtypes": ("exam/values.py",),
    "msgspec": ("/",),  # the record library is the language of every seam
    "nbconvert": ("nbgrader_plugin.py",),
    "nbformat": ("course/parsing.py",),
    "alembic": ("nbgrader_parts.py",),
    "nbgrader": (
        "nbgrader_parts.py",
        "results/gradebook.py",
        "results/exporters.py",  # nbgrader loads it and the last one
        "run/exchange.py",
        "run/deposit.py",
        "nbgrader_plugin.py",
    ),
    "numpy": ("bench/floor.py", "exam/", "compare.py", "tolerances.py", "kernels/zygote.py", "results/likeness.py"),
    "otter": ("bench/otter.py",),
    "platformdirs": ("results/receipts.py",),
    "rapidfuzz": ("results/likeness.py",),
    "rich": ("commands/",),
    "scipy": ("results/likeness.py",),
    "sqlalchemy": (  # one opens, one writes through nbgrader's API; our two tables are read without it
        "results/classbook.py",
        "results/database.py",
        "results/gradebook.py",
        "results/markbook.py",
        "results/standings.py",
    ),
    "tornado": ("exam/candidate.py",),
    "traitlets": (
        "bench/floor.py",
        "config.py",
        "kernels/kernel.py",
        "kernels/provisioner.py",
        "results/exporters.py",
        "results/lateness.py",
    ),  # Jupyter's classes
    "watchfiles": ("run/watch.py",),
    "yaml": ("course/portals.py",),
    "zmq": ("kernels/kernel.py", "kernels/client.py"),  # the two ends of one socket
}

# What a room must not import. Data goes course -> exam -> results; `run` drives; `kernels` lies below `exam`.
FORBIDDEN = {
    "errors": {
        "checks",
        "compare",
        "config",
        "course",
        "coursework",
        "exam",
        "kernels",
        "records",
        "results",
        "run",
        "runs",
    },
    "coursework": {"checks", "compare", "config", "course", "exam", "kernels", "results", "run"},
    "runs": {"checks", "compare", "config", "course", "exam", "kernels", "results", "run"},
    "targets": {"checks", "compare", "config", "course", "exam", "kernels", "results", "run"},
    "records": {"checks", "compare", "config", "course", "exam", "kernels", "results", "run"},
    "config": {"checks", "compare", "course", "exam", "kernels", "results", "run"},
    "tolerances": {"checks", "compare", "config", "course", "exam", "kernels", "results", "run"},
    "compare": {"checks", "config", "course", "exam", "kernels", "results", "run"},
    "checks": {"config", "course", "kernels", "results", "run"},
    "kernels": {"checks", "compare", "course", "exam", "results", "run"},
    "exam": {"results", "run"},
    "results": {"course", "run"},
    "course": {"run"},
    "run": {"bench"},
}


@functools.cache
def modules() -> dict[str, Path]:
    """Every module of the package: dotted name and file."""
    return {dotted(path): path for path in sorted(PACKAGE.rglob("*.py"))}


def dotted(path: Path) -> str:
    """`graders/exam/wire.py` is `graders.exam.wire`; a package is named like its folder."""
    return ".".join(path.relative_to(ROOT).with_suffix("").parts).removesuffix(".__init__")


@functools.cache
def imports(path: Path, *, for_types: bool = True) -> set[str]:
    """Dotted names that a file imports, inside functions too; `from a import b` gives both `a` and `a.b`.

    `for_types=False` leaves out what stands under `if TYPE_CHECKING`, which never runs.
    """
    found = set()
    package = dotted(path).split(".") if path.name == "__init__.py" else dotted(path).split(".")[:-1]
    tree = ast.parse(path.read_text())
    if not for_types:
        tree = WithoutTypeImports().visit(tree)
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            parents = package[: len(package) - node.level + 1] if node.level else []
            source = ".".join([*parents, *([node.module] if node.module else [])])
            found |= {source, *(f"{source}.{alias.name}" for alias in node.names)}
    return found


class WithoutTypeImports(ast.NodeTransformer):
    """A module as it runs."""

    def visit_If(self, node: ast.If) -> ast.AST | None:
        """Drop `if TYPE_CHECKING:`."""
        named = isinstance(node.test, ast.Name) and node.test.id == "TYPE_CHECKING"
        return None if named else self.generic_visit(node)


def third_party(path: Path) -> set[str]:
    """Top-level names that a file imports and that are neither Python's nor ours."""
    tops = {name.split(".")[0] for name in imports(path)}
    return tops - set(sys.stdlib_module_names) - {"graders"}


def ours(path: Path, *, for_types: bool = True) -> set[str]:
    """Modules of this package that a file imports."""
    return {name for name in imports(path, for_types=for_types) if name in modules()} - {"graders", dotted(path)}


def room(module: str) -> str:
    """`graders.exam.wire` stands in the room `exam`."""
    return module.split(".")[1] if "." in module else ""


def normal(name: str) -> str:
    """A distribution's name as the packaging standard compares it (PEP 503)."""
    return re.sub(r"[-_.]+", "-", name).lower()


def locked(name: str) -> dict[str, set[str]]:
    """A lock file as name: {version and marker}; one package may have a version for each Python."""
    pins: dict[str, set[str]] = {}
    for line in (ROOT / name).read_text().splitlines():
        package, _, rest = line.partition("==")
        pins.setdefault(package, set()).add(rest)
    return pins


def declared(*extras: str) -> set[str]:
    """Names in pyproject.toml: what the package needs, and the extras asked for."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    groups = [project["dependencies"], *(project["optional-dependencies"][extra] for extra in extras)]
    return {normal(re.match(r"[\w.-]+", line)[0]) for group in groups for line in group}


def tracked() -> list[Path]:
    """The files that git tracks, or a skip where this is no clone."""
    git = shutil.which("git")
    if git is None or not (ROOT / ".git").exists():
        pytest.skip("not a git clone, or no git here: nothing says which files are tracked")
    listed = subprocess.run(
        [git, "-c", f"safe.directory={ROOT}", "ls-files", "-z"], cwd=ROOT, check=True, capture_output=True, text=True
    ).stdout
    return [ROOT / name for name in listed.split("\0") if name and (ROOT / name).is_file()]


def test_environment_yml_has_the_versions_of_the_lock():
    """conda users get, for every package that this project names, the version that `make setup` installs."""
    conda = yaml.safe_load((ROOT / "environment.yml").read_text())["dependencies"]
    lines = next(entry["pip"] for entry in conda if isinstance(entry, dict))
    pins = dict(line.replace("[binary]", "").split("==") for line in lines if not line.startswith("--"))
    pins |= {line.split("=")[0]: line.split("=")[1] for line in conda if isinstance(line, str) and "=" in line}
    assert pins.pop("python") == "3.11"
    assert declared("dask", "test") == set(pins)
    lock = locked("requirements.lock")
    assert {name: lock[name] for name in pins} == {name: {version} for name, version in pins.items()}
    assert "--constraint requirements.lock" in lines


@pytest.mark.parametrize("name", ["requirements.lock", "requirements-newest.lock"])
def test_a_lock_holds_exact_versions_and_nothing_else(name):
    """Each line of a lock is one name, one exact version and perhaps a marker: no address, no path, no comment."""
    line = re.compile(r"[a-z0-9-]+==[0-9][0-9a-z.]*( ; [a-z_]+ [^;#@/]+)?")
    assert [text for text in (ROOT / name).read_text().splitlines() if not line.fullmatch(text)] == []


@pytest.mark.parametrize("name", ["requirements.lock", "requirements-newest.lock"])
def test_a_lock_pins_all_that_is_declared(name):
    """What pyproject.toml names is in the lock, the build backend too; only the TPU compiler is left to its host."""
    backend = tomllib.loads((ROOT / "pyproject.toml").read_text())["build-system"]["requires"][0].split("==")
    lock = locked(name)
    assert declared("dask", "test") - set(lock) == set()
    assert lock[backend[0]] == {backend[1]}


def test_the_locks_differ_in_jax_alone():
    """The default is the JAX of the lessons' record, the other lock the newest for each Python; all else is equal."""
    default, newest = locked("requirements.lock"), locked("requirements-newest.lock")
    assert {name for name in default | newest if default.get(name) != newest.get(name)} == {"jax", "jaxlib"}
    for name in ("jax", "jaxlib"):
        assert default[name] == {"0.9.2"}
        assert newest[name] == {"0.10.2 ; python_full_version < '3.12'", "0.12.0.1 ; python_full_version >= '3.12'"}


def test_no_tracked_file_names_a_registry_or_a_home():
    """A file that a person clones holds no address of a package registry and no path of somebody's home."""
    hosts = "|".join(["pypi", "files.pythonhosted", "registry.npmjs", "conda.anaconda", "deb.debian"]).replace(
        ".", r"\."
    )
    address = rf"://({hosts})\.|--(extra-)?index-url|--find-links"
    home = r"(?<![\w.~])/(home|Users|root)/(?!candidate\b)[\w.]"  # the candidate's home exists inside the walls alone
    unwanted = re.compile(f"{address}|{home}")
    found = []
    for path in tracked():
        raw = path.read_bytes()
        if b"\0" not in raw and path != Path(__file__).resolve():
            lines = enumerate(raw.decode(errors="replace").splitlines(), 1)
            found += [
                f"{path.relative_to(ROOT)}:{number}: {line[:120]}" for number, line in lines if unwanted.search(line)
            ]
    assert found == []


@pytest.mark.parametrize("name", ["records.py", "compilations.py", "errors.py"])
def test_the_words_stand_on_the_standard_library(name):
    """Records and errors, which everything imports, import only Python's own library and the record library."""
    assert third_party(PACKAGE / name) <= {"msgspec"}


def owned(module: str, owners: tuple[str, ...]) -> bool:
    """Whether a module is one of the owners or stands in a room that is."""
    return any(owner in ("/", module) or (owner.endswith("/") and module.startswith(owner)) for owner in owners)


def test_each_library_has_its_owner():
    """A third-party library is imported by the modules that own it and by no other."""
    strangers = [
        f"{path.relative_to(PACKAGE)} imports {library}"
        for path in modules().values()
        for library in sorted(third_party(path))
        if not owned(path.relative_to(PACKAGE).as_posix(), OWNERS.get(library, ()))
    ]
    assert strangers == []


def test_each_library_is_declared():
    """What a module imports is named in pyproject.toml, not left to come along with something else."""
    distributions = {"IPython": "ipython", "zmq": "pyzmq", "yaml": "pyyaml", "otter": "otter-grader"}
    used = {library for path in modules().values() for library in third_party(path)}
    assert {normal(distributions.get(library, library)) for library in used} - declared("dask", "tpu", "bench") == set()


def test_imports_go_one_way():
    """No room imports one that lies above it."""
    wrong = [
        f"{module} imports {other}"
        for module, path in modules().items()
        for other in sorted(ours(path))
        if room(other) in FORBIDDEN.get(room(module), set())
    ]
    assert wrong == []


def test_imports_form_no_circle():
    """The modules can be put in an order in which each imports only earlier ones, inside functions too."""
    graph = {module: ours(path, for_types=False) for module, path in modules().items()}
    graphlib.TopologicalSorter(graph).prepare()


def test_nothing_imports_the_command_line():
    """The command line drives the package; no module knows it but the one that lets `python -m graders` start."""
    drivers = {"cli", "commands", "__main__"}
    assert [
        name for name, path in modules().items() if room(name) not in drivers and "graders.commands" in ours(path)
    ] == []
    assert [name for name, path in modules().items() if "graders.cli" in ours(path)] in ([], ["graders.__main__"])


def test_only_the_command_line_prints():
    """The core returns values; a person reads what the consoles of the command line show, and nothing calls `print`."""
    printing = {
        path.relative_to(PACKAGE).as_posix()
        for path in modules().values()
        for node in ast.walk(ast.parse(path.read_text()))
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "print"
    }
    assert printing == set()


def test_the_pipeline_never_imports_jax():
    """Importing all that the grading process imports leaves JAX out: on a TPU host it must not take the chip."""
    names = [name for name in modules() if room(name) in {"cli", "commands", "config", "course", "results", "run"}]
    script = f"import importlib, sys; [importlib.import_module(name) for name in {names}]; print('jax' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", script], cwd=ROOT, capture_output=True, text=True)
    assert (done.stdout.strip(), done.stderr, done.returncode) == ("False", "", 0)


def test_installing_brings_the_kernelspec():
    """The sandbox has a kernelspec of its own beside an untouched `python3`."""
    manager = KernelSpecManager()
    assert {"graders-sandbox", "python3"} <= set(manager.find_kernel_specs())
    assert manager.get_kernel_spec("python3").metadata.get("kernel_provisioner") is None


def test_entry_points_lead_somewhere():
    """The console script and the provisioner that pyproject.toml promises can be loaded."""
    promised = distribution("graders").entry_points
    assert {entry.name for entry in promised} == {"graders", "graders-sandbox-provisioner"}
    for entry in promised:
        assert callable(entry.load())
