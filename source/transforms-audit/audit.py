"""Run the four stages of the transforms audit and, if asked, keep the evidence.

    python audit.py --implementation starter
    python audit.py --implementation starter --evidence-dir runs/transforms-audit

`starter`, which is also the default, is the model.py beside this file. `solution` is the instructor's reference and exists in
the instructor's folder alone.

Exit status: 0 when all stages are written and everything agrees, 1 when something is missing or differs, 2 for a command
that cannot be run. This file is complete; nothing in it is for you to write.
"""

import argparse
import importlib.util
import json
import platform
from datetime import datetime, timezone
from pathlib import Path

import jax
import jax.numpy as jnp

HERE = Path(__file__).resolve().parent
PARTS = ("scalar_score", "scores_by_loop", "slopes_by_hand", "batch_scores", "batch_slopes")
WEIGHT = 0.5
FIVE = (-4.0, 1.0, 2.0, 3.0, 8.0)
EIGHT = (*FIVE, 6.0, 0.0, -1.0)


def vector(numbers, dtype=jnp.float32):
    """The numbers as an array with an explicit dtype."""
    return jnp.array(numbers, dtype=dtype)


def file_of(implementation):
    """The file that an implementation stands in. Raises LookupError when it is not here."""
    own, reference = HERE / "model.py", HERE / "solution_model.py"
    if implementation == "starter":
        return own
    if reference.is_file():
        return reference
    if " ".join(("BEGIN", "SOLUTION")) in own.read_text(encoding="utf-8"):
        return own  # the author's text, solutions included
    raise LookupError("the solution is not in this folder; it stays with the instructor. Use --implementation starter")


def load(path):
    """Run a file as a module of its own, so that its newest text counts."""
    spec = importlib.util.spec_from_file_location("audited_model", path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def independent_calculations(model):
    """Stage 1: every way to the scores and slopes of five numbers, as lists."""
    xs = vector(FIVE)
    return {
        "weight": WEIGHT,
        "xs": list(FIVE),
        "scalar_score": [float(model.scalar_score(WEIGHT, x)) for x in xs],
        "scores_by_loop": model.scores_by_loop(WEIGHT, xs),
        "batch_scores": model.batch_scores(WEIGHT, xs).tolist(),
        "slopes_by_hand": model.slopes_by_hand(WEIGHT, xs),
        "batch_slopes": model.batch_slopes(WEIGHT, xs).tolist(),
    }


def changed_conditions(model):
    """Stage 2: a ledger over changed values, lengths and dtypes, with a cause for each row."""
    batches = [vector(FIVE), vector(FIVE) + 1.0, vector(EIGHT), vector(FIVE), vector((1, 2, 3, 4, 5), jnp.int32)]
    ledger = model.trace_ledger(lambda xs: model.batch_scores(WEIGHT, xs), batches)
    return {"ledger": ledger, "causes": model.causes(ledger)}


def retained_evidence(model):
    """Stage 3: a row for scores and one for slopes, at both lengths."""
    rows = []
    for numbers in (FIVE, EIGHT):
        xs = vector(numbers)
        scores = model.scores_by_loop(WEIGHT, xs), model.batch_scores(WEIGHT, xs)
        slopes = model.slopes_by_hand(WEIGHT, xs), model.batch_slopes(WEIGHT, xs)
        rows += [dict(model.evidence_row("scores", *scores)), dict(model.evidence_row("slopes", *slopes))]
    return {"rows": rows}


def integrated(model):
    """Stage 4: the checks, on the functions of stage 1."""
    return {"checks": dict(model.integrated_checks({name: getattr(model, name) for name in PARTS}))}


STAGES = (independent_calculations, changed_conditions, retained_evidence, integrated)


def run_stage(stage, model):
    """What a stage found, with its status. A stage that fails does not keep the next from running."""
    try:
        found = stage(model)
        json.dumps(found, allow_nan=False)  # evidence is made of plain values
    except NotImplementedError:
        return {"status": "not written yet"}
    except Exception as error:
        return {"status": "failed", "reason": f"{type(error).__name__}: {error}"[:500]}
    return {"status": "done"} | found


def run(implementation):
    """The whole record of one implementation."""
    model = load(file_of(implementation))
    return {
        "project": "transforms-audit",
        "implementation": implementation,
        "made": datetime.now(timezone.utc).isoformat(timespec="seconds"),
        "python": platform.python_version(),
        "jax": jax.__version__,
        "device": jax.devices()[0].device_kind,
        "stages": {str(number): run_stage(stage, model) for number, stage in enumerate(STAGES, 1)},
    }


def complete(stages):
    """Whether all stages are written, every row agrees and every check is true."""
    done = all(stage["status"] == "done" for stage in stages.values())
    verdicts = [row.get("agrees") for row in stages["3"].get("rows", ())]
    verdicts += stages["4"].get("checks", {}).values()
    return done and all(verdict is True for verdict in verdicts)


def main(arguments=None):
    """Run the command and return its exit status."""
    parser = argparse.ArgumentParser(prog="audit.py", description="Run the four stages of the transforms audit.")
    parser.add_argument("--implementation", choices=("starter", "solution"), default="starter")
    parser.add_argument("--evidence-dir", type=Path, metavar="DIR", help="keep evidence.json in this folder")
    options = parser.parse_args(arguments)
    try:
        record = run(options.implementation)
    except LookupError as error:
        parser.error(str(error))
    for number, stage in record["stages"].items():
        print(f"stage {number}: {stage['status']}" + (f", {stage['reason']}" if "reason" in stage else ""))
    for row in record["stages"]["3"].get("rows", ()):
        print("   ", row)
    for name, passed in record["stages"]["4"].get("checks", {}).items():
        print(f"    {name}: {passed}")
    if options.evidence_dir is not None:
        options.evidence_dir.mkdir(parents=True, exist_ok=True)
        kept = options.evidence_dir / "evidence.json"
        kept.write_text(json.dumps(record, indent=1) + "\n", encoding="utf-8")
        print("kept in", kept)
    return 0 if complete(record["stages"]) else 1


if __name__ == "__main__":
    raise SystemExit(main())
