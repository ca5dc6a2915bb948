"""The two proofs by trial: answers whose points are known get them, and wrong answers lose points.

Comes in: a `Gate` so far, and a course with its reference. Goes out: the gate with findings and figures added. Must not: read
a test's text; only what tests do to answers counts.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

import msgspec

from graders.course import answers
from graders.course.answers import Equivalent, KnownAnswer
from graders.course.mutants import Mutant, mutants
from graders.coursework import Assignment, Role
from graders.exam.bindings import bound, parse, read
from graders.exam.ownership import owners
from graders.findings import CheckFigures, ExerciseFigures, Finding, Gate, Level, Survivor
from graders.records import CheckResult, ExerciseResult, Outcome
from graders.results.hints import student_reads
from graders.run import trials
from graders.run.pipeline import Course
from graders.run.trials import Exercise, Place, Trial, Tried


def known_answers(made: Gate, place: Place, course: Course) -> Gate:
    """Every known answer gets exactly its points and hint, every hostile submission its total."""
    known = answers.known_answers(place.answers)
    exercises = trials.exercises(course.assignment)
    by_cell = {answer.id: exercise.id for exercise in exercises for answer in exercise.answers}
    found = [_lost(one) for one in known if one.cell not in by_cell]
    here = [one for one in known if one.cell in by_cell]
    tests = [Trial(by_cell[one.cell], str(number), {one.cell: one.source}) for number, one in enumerate(here)]
    for done in trials.tried(place, course, tests, exercises):
        found += _compare(here[int(done.trial.name)], done.results)
    attacks = answers.hostile(place.answers)
    jobs = [trials.job(place.home, place.source, course.assignment, one.name, one.cells) for one in attacks]
    reports = trials.reports_of(place, jobs, course)
    for one in attacks:
        score = reports[one.name].score
        if score != one.total:
            found.append(_answer("hostile", "", f"the hostile submission {one.name!r} earns {score}, not {one.total}."))
    if not known:
        text = f"there are no known answers in {place.answers}, so nothing shows that typical answers get the right points."
        found.append(Finding("answers: none", Level.warning, "", "", None, text))
    told = f"{len(known)} known answers and {len(attacks)} hostile submissions"
    return msgspec.structs.replace(made, findings=made.findings + tuple(found), ran=made.ran | {"answers": told})


def _answer(rule: str, cell: str, text: str) -> Finding:
    return Finding(f"answers: {rule}", Level.error, "", cell, None, text)


def _lost(one: KnownAnswer) -> Finding:
    text = f"the known answer {one.name!r} is for the cell {one.cell!r}, which no test of this assignment judges."
    return _answer("lost", one.cell, f"{text} Give it the grade_id of an answer cell.")


def _compare(known: KnownAnswer, results: Sequence[ExerciseResult]) -> list[Finding]:
    checks = [check for one in results if one.id == known.exercise for check in one.checks]
    earned = {check.title: check.earned for check in checks if check.points}
    found = []
    for title in dict.fromkeys([*known.points, *earned]):
        wanted, got = known.points.get(title), earned.get(title)
        if wanted != got:
            text = (
                f"the known answer {known.name!r} should earn {'nothing' if wanted is None else wanted} from the check {title!r}, "
                f"and earns {'nothing, since there is no such check' if got is None else got}. Mend the test, or the points."
            )
            found.append(_answer("points", known.exercise, text))
    if known.hint and not any(known.hint in (student_reads(check) or "") for check in checks):
        text = f"the known answer {known.name!r} should be told {known.hint!r}, and is not. Name that misconception in the test."
        found.append(_answer("hint", known.exercise, text))
    return found


def mutation(made: Gate, place: Place, course: Course, floor: float | None) -> Gate:
    """Try every mutant of the reference answers; refuse a score below `floor`, which is a share from 0 to 1."""
    exercises = trials.exercises(course.assignment)
    pairs = [(one, exercise) for exercise in exercises for one in mutants_of(course.assignment, exercise)]
    tests = [
        Trial(exercise.id, str(number), {cell: mutant.source})
        for number, ((cell, mutant), exercise) in enumerate(pairs)
    ]
    done = trials.tried(place, course, tests, exercises)
    kills = {int(one.trial.name): _noticing(one) for one in done}
    explained = answers.equivalent(place.answers)
    survivors = [
        Survivor(exercise.id, cell, mutant.what, mutant.diff, _reason(explained, exercise.id, mutant))
        for number, ((cell, mutant), exercise) in enumerate(pairs)
        if not kills[number]
    ]
    figures = [
        _figures(one.id, [kills[int(t.name)] for t in tests if t.exercise == one.id], survivors) for one in exercises
    ]
    checks = [figure for one in exercises for figure in _checks_of(one, done, kills)]
    made = msgspec.structs.replace(
        made,
        exercises=tuple(figures),
        checks=tuple(checks),
        survivors=tuple(survivors),
        ran=made.ran | {"mutants": f"{len(tests)} wrong answers made from the solution"},
    )
    found = _idle(checks) + _stale(explained, survivors) + _below(made.score, floor)
    return msgspec.structs.replace(made, findings=made.findings + tuple(found))


def mutants_of(assignment: Assignment, exercise: Exercise) -> list[tuple[str, Mutant]]:
    """Mutants of one exercise's answers, each with the grade_id of the cell it is for."""
    names = owners(assignment.notebooks[exercise.notebook], assignment.modules())
    wanted = {name for test in exercise.tests for name in names[test.id or ""].candidate}
    visible = "\n".join(test.released for test in exercise.tests)
    found = []
    for answer in reversed(exercise.answers):
        tree = parse(answer.source) if answer.cell_type in ("code", "file") else None
        if tree is not None and answer.role is Role.answer:
            if answer.cell_type == "file":  # what a test says of a module's functions, it says by their names
                wanted |= bound(tree) & {word for test in exercise.tests for word in re.findall(r"\w+", test.source)}
            found += [(answer.id or "", one) for one in mutants(answer.source, wanted, answer.released, visible)]
            wanted |= set(read(tree))
    return found


def _noticing(done: Tried) -> frozenset[tuple[str, str]]:
    """The checks that took points, or failed on the way; none when the answer got full marks."""
    if all(one.score is None or one.score >= one.max_score for one in done.results):
        return frozenset()
    return frozenset((one.id, check.title) for one in done.results for check in one.checks if _failed(check))


def _failed(check: CheckResult) -> bool:
    return check.outcome is not Outcome.passed or check.earned < check.points


def _reason(explained: Sequence[Equivalent], exercise: str, mutant: Mutant) -> str:
    return next((one.reason for one in explained if one.exercise == exercise and _same(one.diff, mutant.diff)), "")


def _same(one: str, other: str) -> bool:
    """Whether two diffs are the same, white space apart. A part is not enough: it might also stand in a worse mutant."""
    return one.split() == other.split()


def _figures(
    exercise: str, kills: Sequence[frozenset[tuple[str, str]]], survivors: Sequence[Survivor]
) -> ExerciseFigures:
    equivalent = sum(one.exercise == exercise and bool(one.reason) for one in survivors)
    return ExerciseFigures(exercise, len(kills), sum(map(bool, kills)), equivalent)


def _checks_of(
    exercise: Exercise, done: Sequence[Tried], kills: dict[int, frozenset[tuple[str, str]]]
) -> list[CheckFigures]:
    own = [one for one in done if one.trial.exercise == exercise.id]
    titles = dict.fromkeys(
        (one.id, check.title) for t in own for one in t.results for check in one.checks if check.points
    )
    noticed = [kills[int(one.trial.name)] for one in own]
    return [
        CheckFigures(
            test, title, sum((test, title) in one for one in noticed), noticed.count(frozenset({(test, title)}))
        )
        for test, title in titles
    ]


def _idle(checks: Sequence[CheckFigures]) -> list[Finding]:
    text = "the check {!r} noticed none of the wrong answers, so nothing shows that it can fail. Test what the others do not."
    return [
        Finding("mutants: idle check", Level.warning, "", one.exercise, None, text.format(one.title))
        for one in checks
        if not one.killed
    ]


def _stale(explained: Sequence[Equivalent], survivors: Sequence[Survivor]) -> list[Finding]:
    """Explanations for which there is no survivor any more."""
    return [
        Finding(
            "mutants: stale explanation",
            Level.warning,
            "",
            one.exercise,
            None,
            f"no survivor has the diff {one.diff!r}. Remove it.",
        )
        for one in explained
        if not any(s.exercise == one.exercise and _same(one.diff, s.diff) for s in survivors)
    ]


def _below(score: float | None, floor: float | None) -> list[Finding]:
    if floor is None or score is None or score >= floor:
        return []
    text = (
        f"the tests notice {score:.1%} of the wrong answers, and c.Graders.mutation_floor is {floor:.1%}. "
        "Strengthen the tests by the survivors below, or explain those that are right in equivalent.toml."
    )
    return [Finding("mutants: score", Level.error, "", "", None, text)]
