"""Laws of the downloads: made of released cells alone, plain Python and Markdown, and no part of what is graded."""

from __future__ import annotations

import json
import runpy
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from notebook_samples import answer, cell, dump, hidden, locked, notebook, secret_lines

from graders.config import Settings
from graders.course.assignments import EXECUTION_RECORD, read_assignment
from graders.course.downloads import as_python, downloads
from graders.course.leaks import leaks
from graders.course.parsing import parse
from graders.course.release import generate
from graders.errors import CourseError

LESSONS = ("performance-02", "transforms-05", "transforms-audit")


def markdown(source: str, **more: Any) -> dict[str, Any]:
    """A cell of text."""
    return {"cell_type": "markdown", "id": "text", "metadata": more, "source": source}


def made(*cells: dict[str, Any], name: str = "nb") -> dict[str, str]:
    """The downloads of a released notebook of these cells."""
    files = downloads(name, parse(dump(notebook(*cells)), "nb.ipynb")[0])
    return {path.removeprefix("downloads/"): data.decode() for path, data in files.items()}


BOOK = (
    markdown("# A title\n\nSome *text*."),
    locked("setup", "import math\n%matplotlib inline\nroot = math.sqrt(2)"),
    markdown("Write `f`."),
    cell("f", "def f(x):\n    # YOUR CODE HERE\n    raise NotImplementedError()", solution=True),
    cell("f-test", "assert f(1) == 2  # visible", 1, grade=True, locked=True),
    cell("plain", 'fence = "```"'),
)
WORKED = """\
# The worked examples of nb. Answers and tests are in the notebook alone.
#

# %% [markdown]
# # A title
#
# Some *text*.

# %%
import math
pass  # %matplotlib inline
root = math.sqrt(2)

# %% [markdown]
# Write `f`.

# %% [markdown]
# (In the notebook: your answer f)

# %%
fence = "```"
"""
LESSON_TEXT = """\
# A title

Some *text*.

```python
import math
%matplotlib inline
root = math.sqrt(2)
```

Write `f`.

```python
def f(x):
    # YOUR CODE HERE
    raise NotImplementedError()
```

```python
assert f(1) == 2  # visible
```

````python
fence = "```"
````
"""


def test_examples_are_python_and_the_text_is_markdown(tmp_path: Path) -> None:
    """The .py holds text as comments and the cells that are neither answer nor test, and runs; the .md holds all that is
    released, each cell in a fence of its own.
    """
    files = made(*BOOK)
    assert files == {"nb.py": WORKED, "nb.md": LESSON_TEXT}
    (tmp_path / "nb.py").write_text(files["nb.py"])
    assert runpy.run_path(str(tmp_path / "nb.py"))["root"] == pytest.approx(1.41421356)


@pytest.mark.parametrize(
    ("source", "python"),
    [
        ("%time f(1)\ny = 1", "pass  # %time f(1)\ny = 1"),
        ("if x:\n    !ls", "if x:\n    pass  # !ls"),
        ("files = !ls\nf?", "pass  # files = !ls\npass  # f?"),
        ("from __future__ import annotations\ny = 1", "pass  # from __future__ import annotations\ny = 1"),
        ("%%bash\nls | wc", "# %%bash\n# ls | wc"),
        ("await task", "# await task"),
        ("return 1\n", "# return 1"),
        ('text = """\n%time is money\n"""', 'text = """\n%time is money\n"""'),
        (r"pattern = '\d'; assert (1, '')", r"pattern = '\d'; assert (1, '')"),
    ],
)
def test_what_only_ipython_reads_becomes_a_comment(source: str, python: str) -> None:
    """Magics, shell lines, questions and what may not stand in the middle of a file are commented out, and no more than that."""
    assert as_python(source) == python


@given(st.lists(st.text(st.characters(codec="utf-8") | st.sampled_from("%!?\"'#\n\r\\( :"), max_size=40), max_size=4))
def test_whatever_a_cell_holds_the_file_is_python(sources: list[str]) -> None:
    """Text and code of any characters give a file that compiles."""
    cells = [made for source in sources for made in (markdown(source), locked("x", source))]
    compile(made(*cells)["nb.py"], "nb.py", "exec")


def test_a_file_hides_no_library() -> None:
    """A notebook called like a library that it uses, or like one of Python's own, gives a file of another name."""
    uses = locked("setup", "from jax.numpy import sin")
    names = {name: sorted(made(uses, name=name)) for name in ("jax", "random", "lesson")}
    assert names["jax"] == ["jax-examples.py", "jax.md"]
    assert names["random"] == ["random-examples.py", "random.md"]
    assert names["lesson"] == ["lesson.md", "lesson.py"]


@pytest.mark.parametrize("name", LESSONS)
def test_the_lessons_downloads_hold_no_secret(root: Path, name: str) -> None:
    """The committed downloads of each lesson are there and hold no hidden line and no line of a solution."""
    source = (root / "source" / name / f"{name}.ipynb").read_text()
    secrets = set().union(*(secret_lines("".join(one["source"])) for one in json.loads(source)["cells"]))
    assert len(secrets) > 20
    for path in (f"{name}.py", f"{name}.md"):
        lines = (root / "release" / name / "downloads" / path).read_text().splitlines()
        assert len(lines) > 50
        assert {line.strip().removeprefix("# ") for line in lines} & secrets == set()


SECRET = "return one + other + 0 * one"
MODEL = f"def add(one, other):\n    ### BEGIN SOLUTION\n    {SECRET}\n    ### END SOLUTION\n"


def test_downloads_are_no_part_of_an_assignment(
    tmp_path: Path, small_course: Callable[[Path, dict[str, dict]], Settings]
) -> None:
    """A release has downloads; they change neither the version nor the files of the assignment, and are no answer files."""
    settings = small_course(tmp_path, {"ps1": notebook(answer("t", "t = 3"), hidden("t-test", "assert t == 3", 1))})
    (tmp_path / "source" / "ps1" / "model.py").write_text(MODEL)
    generate(tmp_path, settings.course_id, "ps1")
    folder = tmp_path / "release" / "ps1"
    assert sorted(path.name for path in (folder / "downloads").iterdir()) == ["nb.md", "nb.py"]
    before = read_assignment(tmp_path, "ps1")
    (folder / "downloads" / "more.py").write_text(MODEL)
    (folder / EXECUTION_RECORD).write_text("{}")
    after = read_assignment(tmp_path, "ps1")
    assert after == before
    assert (set(after.files), set(after.answer_files)) == ({"model.py"}, {"model.py"})


def test_the_gate_reads_downloads(small_course: Callable[[Path, dict[str, dict]], Settings], tmp_path: Path) -> None:
    """A line of a solution in a download is a leak; the part of a line that another one happens to hold is not."""
    secret = "total = alpha * beta + gamma"
    settings = small_course(tmp_path, {"ps1": notebook(answer("t", secret), hidden("t-test", "assert total", 1))})
    generate(tmp_path, settings.course_id, "ps1")
    author = read_assignment(tmp_path, "ps1")
    found = leaks(author, {}, {"downloads/nb.md": f"```python\n{secret}\n```".encode()})
    assert [(one.rule, one.cell) for one in found] == [("leaks: shown", "t")]
    assert leaks(author, {}, {"downloads/nb.md": f"other_{secret} + 1".encode()}) == []


@pytest.mark.parametrize("taken", ["downloads/data.csv", "execution-record.json"])
def test_a_source_may_not_use_these_names(
    tmp_path: Path, small_course: Callable[[Path, dict[str, dict]], Settings], taken: str
) -> None:
    """A file of the author's with a name that a release makes itself is refused by name, and nothing is released."""
    settings = small_course(tmp_path, {"ps1": notebook(locked("a", "a = 1"))})
    path = tmp_path / "source" / "ps1" / taken
    path.parent.mkdir(exist_ok=True)
    path.write_text("1")
    with pytest.raises(CourseError, match=f"{taken} has a name that a release makes itself"):
        generate(tmp_path, settings.course_id, "ps1")
    assert not (tmp_path / "release").exists()
