# Everything runs from .venv, which is made here from requirements.lock. Wanted beforehand: make and Python 3.11 or newer.
#
#   make setup         .venv with the locked versions and this package
#   make demo          a simulated class, graded
#   make test          the tests
#   make hub           what deploy/jupyterhub/ runs: JupyterHub and its proxy, see docs/jupyterhub.md
#   make tpu-compiler  Google's libtpu beside .venv, for --target tpu-compile and tpu: docs/tpu.md
#   make test-system   the tests that need Chromium, PostgreSQL and, as root, accounts and networks: pages, JupyterLab, formgrader, a hub, a cluster; and long walks
#   make attack        the attack corpus and a table of what succeeded; `make attack NBGRADER=1` runs nbgrader too: docs/attacks.md
#   make bench         what a submission costs, beside nbgrader, otter-grader and the least there could be: some ten minutes
#   make fuzz          coverage-guided fuzzing of what reads a candidate's bytes, five minutes; `make fuzz TARGET=programs SECONDS=36000`
#   make test-newest   the tests with the newest JAX, also on Python 3.13 where there is one
#   make test-long     big classes and big outputs, by hand: some ten minutes
#   make class         a class of 2,000 on this machine, half an hour on two cores, and its picture: docs/measurements.md
#   make lab           JupyterLab on this course
#   make lint          style and types
#   make lock          both lock files anew; `make lock UPGRADE=--upgrade` moves to the newest versions
#   make clean         what the targets above made
#
# Another Python: make PYTHON=python3.12 setup

PYTHON ?= python3
INTERPRETER = $(PYTHON)
PYTEST_FLAGS ?= -n 2 --dist loadfile --no-loadscope-reorder
# What speaks to JAX itself; then all that depends on it. The rest is the same code on the same libraries.
JAX_TESTS ?= $(addprefix tests/,exam/test_transforms.py exam/test_honest.py exam/test_views.py exam/test_wire.py exam/test_bounded.py \
  results/test_jaxerrors.py test_checks.py test_compare.py test_tolerances.py)
NEWEST_TESTS ?= tests/exam tests/kernels tests/course/test_answers.py tests/results/test_jaxerrors.py tests/test_checks.py tests/test_compare.py tests/test_tolerances.py
# A Python for which there is a newer JAX, if python3 is not one.
NEWER = $(shell where='import sys; print(sys.executable)'; "$(PYTHON)" -c 'import sys; sys.exit(sys.version_info >= (3, 12))' && \
  { python3.13 -c "$$where" 2>/dev/null || PYENV_VERSION=3.13 python3.13 -c "$$where" 2>/dev/null; })
UPGRADE ?=
SECONDS ?= 300
TARGET ?= messages

# A setting of the caller's own shell must not reach into these environments.
unexport PYTHONHOME PYTHONPATH VIRTUAL_ENV
export PIP_USER := 0
export PIP_NO_INPUT := 1
export PIP_DISABLE_PIP_VERSION_CHECK := 1

# Environments hold absolute paths: one that was moved, or whose Python is gone, is made anew.
IGNORED := $(shell for v in .venv .venv-newest .venv-newest-3.13; do \
  { [ -x "$$v/bin/python" ] && grep -qsF "$(CURDIR)/$$v" "$$v/pyvenv.cfg"; } || rm -f "$$v/.installed" "$$v/.ready"; done)

# Inside the sandbox everything is read-only: what is not compiled now is compiled again in every kernel (0.5 CPU-s each).
# Some libraries ship files that only another Python can compile, so a failure here is no failure of the set-up.
compile = $(1)/bin/python -I -W ignore -m compileall -q -j 0 $(2) || :

# Debian's Python may lack ensurepip: its own pip then installs into the environment from outside.
pip = if [ -e $(1)/bin/pip ]; then $(1)/bin/python -I -m pip $(2); else "$(INTERPRETER)" -m pip --python $(1)/bin/python $(2); fi

# What an extra of pyproject.toml names, beside the locked versions.
extra = $(call pip,.venv,install -qq --no-build-isolation --constraint requirements.lock --editable '.[$(1)]')

.PHONY: setup demo class test test-long test-newest newest lab lint lock clean hub test-system attack fuzz bench tpu-compiler

setup: .venv/.ready
	@$(call compile,.venv,graders)

demo: setup
	@.venv/bin/graders demo

test: setup
	.venv/bin/python -m pytest $(PYTEST_FLAGS)

test-long: setup
	.venv/bin/python -m pytest -s -o python_files='long_*.py' tests

class: setup
	@$(call extra,bench)
	@mkdir -p .graders
	STUDENTS=2000 FIGURES=.graders/class.json .venv/bin/python -m pytest -s -o python_files='long_*.py' tests/run/long_scale.py
	.venv/bin/python tests/run/draw_class.py .graders/class.json docs/pictures/class.svg

hub: setup
	@$(call extra,hub)
	@.venv/bin/npm ci --prefix deploy/jupyterhub --ignore-scripts --silent

# Beside .venv and not in it, since a candidate may read all of .venv. The version stands in graders/kernels/tpucompiler.py.
tpu-compiler: setup
	@version=$$(sed -n 's/^VERSION = "\(.*\)".*/\1/p' graders/kernels/tpucompiler.py); \
	[ -d ".venv-tpu/libtpu-$$version.dist-info" ] || { \
	  echo "Installing libtpu $$version into .venv-tpu: 137 MB. It is Google's, under the terms of Google Cloud Platform: .venv-tpu/libtpu/LICENSE"; \
	  rm -rf .venv-tpu; $(call pip,.venv,install -qq --no-deps --no-compile --target .venv-tpu "libtpu==$$version"); }

test-system: hub tpu-compiler
	.venv/bin/python -m pytest $(PYTEST_FLAGS) -m system

fuzz: setup
	@$(call pip,.venv,install -qq --no-build-isolation --editable '.[fuzz]')
	.venv/bin/python tests/fuzz.py $(TARGET) -max_total_time=$(SECONDS)

bench: setup
	@$(call extra,bench)
	.venv/bin/graders bench

attack: setup
	@.venv/bin/python tests/attacks $(if $(NBGRADER),--nbgrader) $(ONLY)

# The newest JAX of all runs all of these tests, the one before it those of JAX alone.
test-newest: newest
	@run() { echo "$$*"; .venv-newest/bin/python -m pytest $(PYTEST_FLAGS) "$$@"; }; \
	if [ -n "$(NEWER)" ]; then run $(JAX_TESTS) && .venv-newest-3.13/bin/python -m pytest $(PYTEST_FLAGS) $(NEWEST_TESTS); \
	else run $(NEWEST_TESTS) && echo "No python3.13 beside an older python3: there is no newer JAX to test with."; fi

newest: .venv-newest/.ready
	@[ -z "$(NEWER)" ] || $(MAKE) --no-print-directory .venv-newest-3.13/.ready INTERPRETER="$(NEWER)"

lab: setup
	PATH="$(CURDIR)/.venv/bin:$$PATH" .venv/bin/python -m jupyterlab

lint: setup
	.venv/bin/python -m ruff check .
	.venv/bin/python -m ruff format --check .
	.venv/bin/python -m mypy

lock:
	[ -x .venv-lock/bin/uv ] || { "$(PYTHON)" -m venv .venv-lock && .venv-lock/bin/python -I -m pip install -qq uv==0.13.9; }
	for name in requirements requirements-newest; do \
	  .venv-lock/bin/uv pip compile --python .venv-lock/bin/python --quiet --no-config --universal --python-version 3.11 --fork-strategy fewest \
	    --no-header --no-annotate --extra dask --extra test $(UPGRADE) \
	    --output-file $$name.lock pyproject.toml $$name.in || exit 1; \
	done

clean:
	rm -rf deploy/jupyterhub/node_modules .venv .venv-tpu .venv-newest .venv-newest-3.13 .venv-lock .pytest_cache .mypy_cache .ruff_cache .hypothesis
	find graders tests -name __pycache__ -type d -exec rm -rf {} +

.venv/.installed: requirements.lock
.venv-newest/.installed .venv-newest-3.13/.installed: requirements-newest.lock

# An environment from its lock, whole or not at all.
%/.installed:
	@command -v "$(INTERPRETER)" >/dev/null || { echo >&2 "make: there is no $(INTERPRETER) here, and graders needs Python 3.11 or newer. \
	Install it, or name the one to use: make PYTHON=/path/to/python3.12 setup"; exit 1; }
	@"$(INTERPRETER)" -c 'import sys; sys.exit(0 if sys.version_info >= (3, 11) else "make: $(INTERPRETER) is Python " + sys.version.split()[0] \
	+ ", and graders needs 3.11 or newer. Install a newer one and name it: make PYTHON=python3.12 setup")'
	@echo "Installing $< into $(@D): about a minute and 1 GB."
	@rm -rf $(@D)
	@if "$(INTERPRETER)" -c 'import ensurepip' 2>/dev/null; then "$(INTERPRETER)" -m venv $(@D); \
	elif "$(INTERPRETER)" -c 'import venv, pip' 2>/dev/null; then "$(INTERPRETER)" -m venv --without-pip $(@D); \
	else echo >&2 "make: $(INTERPRETER) has neither ensurepip nor pip, and graders needs one of them to install its packages into $(@D). \
	On Debian and Ubuntu: apt install python3-venv"; exit 1; fi
	@$(call pip,$(@D),install -qq --no-compile -r $<)
	@$(call compile,$(@D),$(@D)/lib)
	@touch $@

%/.ready: %/.installed pyproject.toml graders/__init__.py graders/kernels/kernelspec/kernel.json
	@$(call pip,$(@D),install -qq --no-deps --no-build-isolation --editable .)
	@$(call compile,$(@D),graders)
	@touch $@
