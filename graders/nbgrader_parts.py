"""nbgrader's converter and gradebook without what they do not use. `python -m graders.nbgrader_parts ps1 …` is `nbgrader
generate_assignment ps1 …` in a third of the time.

Comes in: a command line of nbgrader's. Goes out: what nbgrader writes. Must not: change what that is.

`import nbgrader` loads its server extensions, 3 s; and a new gradebook starts `alembic` from PATH to learn one word, 3 s more.
"""

from __future__ import annotations

import importlib.metadata
import importlib.util
import logging
import sys
import types
from pathlib import Path


def without_servers() -> None:
    """From now on nbgrader's modules are imported without its package's own __init__.

    Two of the 3 s are jsonschema building a grammar of web addresses from rfc3987_syntax.
    """
    found = importlib.util.find_spec("nbgrader")
    if found is None or found.submodule_search_locations is None:
        raise ModuleNotFoundError("nbgrader is not installed here. Next step: make setup.")
    package = types.ModuleType("nbgrader")
    package.__spec__, package.__path__ = found, list(found.submodule_search_locations)
    vars(package)["__version__"] = importlib.metadata.version("nbgrader")
    sys.modules |= {"nbgrader": package, "rfc3987_syntax": None}  # type: ignore[dict-item]


def without_alembic_command() -> None:
    """From now on a new gradebook reads the version of its tables itself; a venv need not be on PATH for that."""
    from alembic.script import ScriptDirectory
    from nbgrader import api

    scripts = Path(api.__file__).parent / "alembic"
    api.get_alembic_version = lambda: ScriptDirectory(str(scripts)).get_current_head()


def without_its_log() -> None:
    """From now on nbgrader's API says nothing itself of what a database answers; whoever calls it gets the error."""
    from nbgrader import api

    api.app_log = logging.Logger("nbgrader.api")
    api.app_log.disabled = True


def main() -> None:
    """Generate an assignment with nbgrader's own options."""
    without_servers()
    without_alembic_command()
    from nbgrader.apps.generateassignmentapp import GenerateAssignmentApp

    GenerateAssignmentApp.launch_instance(sys.argv[1:])


if __name__ == "__main__":
    main()
