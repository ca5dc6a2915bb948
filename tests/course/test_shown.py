"""Laws of what a cell showed: text and pictures of the file that was handed in, within bounds, and nothing that a browser would run."""

from __future__ import annotations

import base64
import json
import struct

import pytest
from hypothesis import given
from hypothesis import strategies as st

from graders.course.parsing import parse
from graders.course.shown import LARGEST_PICTURE, LARGEST_SIDE, MOST_PICTURES, MOST_TEXT, shown

# 1 x 1, by the PNG specification (ISO/IEC 15948), as widely published
PNG = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=="
JSON = st.recursive(
    st.none() | st.booleans() | st.floats() | st.text(max_size=20) | st.just(PNG),
    lambda inner: (
        st.lists(inner, max_size=4)
        | st.dictionaries(
            st.sampled_from(["output_type", "data", "text", "image/png", "text/plain", "text/html", "ename", "x"]),
            inner,
            max_size=5,
        )
    ),
    max_leaves=20,
)


def stream(text: object) -> dict[str, object]:
    """What `print` leaves."""
    return {"output_type": "stream", "name": "stdout", "text": text}


def display(**data: object) -> dict[str, object]:
    """What a cell displays; `_` stands for the slash of a media type."""
    named = {name.replace("_", "/"): value for name, value in data.items()}
    return {"output_type": "display_data", "data": named, "metadata": {}}


def test_text_and_pictures_are_kept_in_their_order():
    """Prints, values, the line of an error, and pictures; a picture stands for the text that is given beside it."""
    error = {"output_type": "error", "ename": "ValueError", "evalue": "no", "traceback": ["\x1b[31mlong"]}
    found = shown(
        [stream(["a\n", "b\n"]), display(text_plain="3"), display(image_png=PNG, text_plain="<Figure>"), error]
    )
    assert found is not None
    assert found.text == "a\nb\n3\nValueError: no\n"
    assert [(one.png, one.width, one.height) for one in found.pictures] == [(PNG, 1, 1)]


@pytest.mark.parametrize(
    "one",
    [
        display(text_html="<script>alert(1)</script>"),
        display(image_svg="<svg onload=alert(1)>", text_latex="$\\href{javascript:1}{x}$"),
        display(image_jpeg=PNG),
        display(application_javascript="alert(1)"),
        stream(""),
        "text",
        None,
    ],
)
def test_what_a_browser_would_run_is_left_out(one):
    """Neither HTML, SVG, LaTeX nor scripts are kept, and a cell that showed nothing else showed nothing."""
    assert shown([one]) is None


@pytest.mark.parametrize(
    "png",
    [
        PNG[:20],
        PNG[:-1],
        "A" * (LARGEST_PICTURE + 1),
        base64.b64encode(b"<svg xmlns='http://www.w3.org/2000/svg' onload='alert(1)'/>").decode(),
        base64.b64encode(base64.b64decode(PNG)[:16] + struct.pack(">II", LARGEST_SIDE + 1, 1) + b"\0" * 40).decode(),
        base64.b64encode(base64.b64decode(PNG)[:16] + struct.pack(">II", 0, 1) + b"\0" * 40).decode(),
        PNG + '"><script>alert(1)</script>',
        {"a": 1},
    ],
)
def test_what_is_no_picture_or_too_large_is_told(png):
    """Bytes that are not a PNG, unfold too far or are too many are not shown, and the page says so."""
    found = shown([stream("before\n"), display(image_png=png)])
    assert found is not None
    assert (found.text, found.pictures) == ("before\n(A picture is not shown.)", ())


def test_endless_output_is_cut():
    """A cell keeps the head of its text and its first pictures."""
    found = shown([stream("x" * 10_000_000), stream("y"), *[display(image_png=PNG)] * 9])
    assert found is not None
    assert len(found.text) < MOST_TEXT + 100
    assert "(cut here)" in found.text
    assert len(found.pictures) == MOST_PICTURES


@given(JSON)
def test_any_output_is_read(outputs):
    """Whatever JSON stands where outputs should, a notebook is read."""
    cells = [{"cell_type": "code", "source": "x", "outputs": outputs}]
    [cell], _ = parse(json.dumps({"cells": cells, "nbformat": 4}).encode(), "nb.ipynb")
    assert cell.shown is None or len(cell.shown.text) < MOST_TEXT + 100
