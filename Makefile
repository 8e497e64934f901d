# make setup      .venv with everything in it; a second run does nothing
# TORCH=...       another torch than the pinned one, as arguments of pip: make setup TORCH="torch==2.7.1"
# TORCH=none      no torch is installed: the one PYTHON already sees is kept (2.6 or newer)
# PYTHON=...      the interpreter that .venv is made from
# JOBS=...        processes of `make test` and `make test-all`, one file of tests each (the cores of this machine, at most 8)
# BENCH=...       what `make bench` runs (all of them): make bench BENCH="generation training"

VENV := .venv
CHOICE := $(VENV)/choice.mk
-include $(CHOICE)  # what .venv was made with, so that a later `make test` does not have to say it again
PYTHON ?= python3
TORCH ?=
JOBS ?= $(shell $(PYTHON) -c 'import os; print(min(8, len(os.sched_getaffinity(0))))' 2>/dev/null || echo 2)

PY := $(VENV)/bin/python
# Python compiles a module when it is first imported; pip would compile all 20,000 of them, in two minutes. Where Python
# may not keep what it compiles, each start would do it again, so there pip does it.
INSTALL := $(PY) -m pip --disable-pip-version-check install $(if $(PYTHONDONTWRITEBYTECODE),,--no-compile)
PINS := $(VENV)/constraints.txt
VERSION := 'import sys; print(sys.version)'
PRINT_CHOICE = printf '%s\n' 'PYTHON ?= $(PYTHON)' 'TORCH ?= $(TORCH)'
STAMP := $(VENV)/.setup-done
EXTRAS := minilm,data
GROUPS := fairseq test bench docs lint
FAIRSEQ := fairseq-fixed
BUILT := $(VENV)/.fairseq-built
# Two files at a time, of up to 1.6 GB of memory each; Python's own flags without those for a debugger. No ninja: torch
# writes the file that tells ninja what to do for one extension at a time, so two at a time overwrite each other's.
COMPILE := DIST_EXTRA_CONFIG="$(CURDIR)/$(VENV)/build.cfg" CFLAGS="$${CFLAGS:--DNDEBUG -fwrapv -O2}" \
  PATH="$(CURDIR)/$(VENV)/no-ninja:$$PATH"
TIMED := long_encoders modern_encoders training generation floor preprocessing
# How other processors compute: products whose last bit depends on their shapes (tests/support/shaken.py), and variables of
# oneDNN and torch that keep to the instructions of older processors, here with two threads. Of an older one with AVX-512:
# make test-processors PROCESSORS='"ONEDNN_MAX_CPU_ISA=AVX512_CORE_VNNI ATEN_CPU_CAPABILITY=avx2"'. If oneDNN reports AMX,
# torch's attention in bf16 needs AVX-512, too; so these settings hide AMX from oneDNN.
SHAKEN := HAT_SHAKEN=1 PYTHONPATH=$(CURDIR)/tests/support/in_every_process
PROCESSORS := "$(SHAKEN)" "ONEDNN_MAX_CPU_ISA=AVX2 ATEN_CPU_CAPABILITY=default OMP_NUM_THREADS=2"
SCRIPTS = $(filter-out %.py,$(wildcard .ci/* train_scripts/*.sh generate_scripts/*.sh examples/*.sh))
# torch and what torch itself requires: with a torch of the user's own, our pins for these do not apply
TORCH_FAMILY := torch|filelock|typing[-_]extensions|sympy|mpmath|networkx|jinja2|markupsafe|fsspec

.DEFAULT_GOAL := help
.PHONY: help setup demo test test-all test-processors lint types docs docs-serve bench clean check-choice

help:  ## show this list
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "make %-15s %s\n", $$1, $$2 }' $(firstword $(MAKEFILE_LIST))
	@grep -E '^# (TORCH|PYTHON|JOBS|BENCH)=' $(firstword $(MAKEFILE_LIST)) | cut -c 3-

setup: $(STAMP) check-choice  ## create .venv and install everything (TORCH=, PYTHON=: see below)
	@echo "setup: $(VENV) is up to date"

demo: setup  ## three minutes: train a summarizer, ask a meeting, label documents, read long ones with an encoder
	$(VENV)/bin/hat demo

test: setup  ## the tests, without the slow runs of whole recipes and benchmarks
	OMP_NUM_THREADS=1 $(PY) -m pytest -q -n $(JOBS) --dist loadfile -m "not slow" tests

test-all: setup  ## all tests, as continuous integration runs them
	OMP_NUM_THREADS=1 $(PY) -m pytest -q -n $(JOBS) --dist loadfile $(RERUNS) tests

test-processors: setup  ## the same tests as on other processors, and those of kernels on public operators of torch
	@for setting in $(PROCESSORS); do echo "test-processors: $$setting"; \
	  env OMP_NUM_THREADS=1 $$setting $(PY) -m pytest -q -n $(JOBS) --dist loadfile -m "not slow" tests || exit 1; done
	HAT_PUBLIC_OPERATORS=1 OMP_NUM_THREADS=1 $(PY) -m pytest -q tests/kernels

lint: setup docs types  ## ruff, mypy, shellcheck; build the site
	$(VENV)/bin/ruff check --no-cache .
	$(VENV)/bin/ruff format --check .
	$(VENV)/bin/shellcheck $(SCRIPTS)

types: setup
	$(VENV)/bin/mypy

docs: setup  ## the documentation as a site, site/index.html
	NO_MKDOCS_2_WARNING=true $(VENV)/bin/mkdocs build --strict

# Over http, because a browser runs no search in a page that it opens from a disk.
docs-serve: docs  ## the site with its search, at http://localhost:8000
	$(PY) -m http.server -b localhost -d site 8000

# One that fails does not stop the others, and is named at the end.
bench: setup  ## run the benchmarks that take time and render benchmarks/README.md (BENCH=: see below)
	@failed=; for name in $(or $(BENCH),$(TIMED)); do echo "bench: $$name"; \
	  $(PY) benchmarks/$$name.py || failed="$$failed $$name"; done; \
	  $(PY) benchmarks/render.py && test -z "$$failed" || { echo "bench: failed:$$failed" >&2; exit 1; }

clean:  ## remove .venv and caches (never data, checkpoints or results)
	rm -rf $(VENV) build dist site *.egg-info .pytest_cache .mypy_cache .ruff_cache
	find . -name __pycache__ -type d -prune -exec rm -rf {} +

check-choice: $(STAMP)
	@$(PRINT_CHOICE) | cmp -s - $(CHOICE) || { echo "setup: $(VENV) was made with another choice than PYTHON=$(PYTHON)" \
	  "TORCH=$(TORCH) (see $(CHOICE)); run 'make clean' first" >&2; exit 1; }

# The stamp is written last, so a step that fails is repeated by the next `make setup`.
# Order: build tools; torch; then fairseq against that torch (hence without build isolation, without a wheel built
# elsewhere, and without its requirements: it asks for torchaudio, which only its speech code imports). With TORCH=none
# .venv sees the other packages of that interpreter too: ours are installed all the same, they come first.
$(STAMP): constraints.txt setup.py pyproject.toml
	@rm -f $@
	@echo "setup: 1/6 Python and C++ compiler"
	@$(PYTHON) -c 'import sys; v = sys.version.split()[0]; sys.exit(0 if sys.version_info >= (3, 11) else \
	  f"setup: Python >= 3.11 is needed, $(PYTHON) is {v}; name another one: make setup PYTHON=python3.12")'
	@command -v $(firstword $(CXX)) >/dev/null || { echo "setup: no C++ compiler ($(CXX)); fairseq is built from source:" \
	  "install g++ or clang, or name one with CXX=" >&2; exit 1; }
	@echo "setup: 2/6 $(VENV)"
	@test "$$($(PY) -c $(VERSION) 2>&1)" = "$$($(PYTHON) -c $(VERSION))" && $(PY) -m pip --version >/dev/null && \
	  $(PRINT_CHOICE) | cmp -s - $(CHOICE) || \
	  $(PYTHON) -m venv --clear $(if $(filter none,$(TORCH)),--system-site-packages) $(VENV) || \
	  { echo "setup: $(PYTHON) -m venv failed; on Debian and Ubuntu it is a package of its own: python3-venv" >&2; exit 1; }
	@echo "setup: 3/6 build tools (pip, setuptools, wheel, cython, numpy)"
	@$(PRINT_CHOICE) > $(CHOICE)
	@cp constraints.txt $(PINS)
	$(INSTALL) -q -c $(PINS) pip setuptools wheel cython numpy
	@echo "setup: 4/6 torch ($(or $(TORCH),pinned))"
ifeq ($(TORCH),none)
	@$(PY) -c 'import torch' 2>/dev/null || \
	  $(PYTHON) -c 'import torch, pathlib; print(pathlib.Path(torch.__file__).resolve().parents[1])' \
	  > "$$($(PY) -c 'import sysconfig; print(sysconfig.get_path("purelib"))')/torch-of-the-user.pth" || \
	  { echo "setup: TORCH=none, but $(PYTHON) has no torch; name an interpreter that has: PYTHON=..." >&2; exit 1; }
else
	$(INSTALL) $(or $(TORCH),-c $(PINS) torch)
endif
	@$(PY) -c 'import sys, torch; v = torch.__version__; sys.exit(0 if tuple(map(int, v.split(".")[:2])) >= (2, 6) else \
	  f"setup: torch {v} is too old, 2.6 or newer is needed")'
ifneq ($(TORCH),)
	@grep -viE '^($(TORCH_FAMILY))==' constraints.txt > $(PINS)
	@$(PY) -c 'from importlib.metadata import version; print("torch==" + version("torch"))' >> $(PINS)
endif
ifeq ($(TORCH),none)
	@grep -vE '^(torch|fairseq-fixed|pip|#)' $(PINS) > $(VENV)/packages.txt
	$(INSTALL) -q --ignore-installed --no-deps --no-build-isolation -r $(VENV)/packages.txt
endif
	@$(MAKE) --no-print-directory -j 2 install-packages build-fairseq  # side by side: they write different files
	@grep -E '^(torch|$(FAIRSEQ))==' $(PINS) > $(BUILT)
	@$(PY) -c 'import logging; logging.disable(logging.INFO); import fairseq.data, torch; \
	  print("setup: done: fairseq", fairseq.__version__, "torch", torch.__version__)'
	@touch $@

# Parts of `make setup`.
.PHONY: install-packages build-fairseq
install-packages:
	@echo "setup: 5/6 hat_fairseq (editable) and what it and fairseq need"
	$(INSTALL) -q -c $(PINS) --no-build-isolation -e '.[$(EXTRAS)]' $(addprefix --group ,$(GROUPS))

build-fairseq:
	@echo "setup: 6/6 fairseq, built from source against this torch (some 90 seconds, beside 5/6)"
	@printf '[build_ext]\nparallel = 2\n' > $(VENV)/build.cfg
	@mkdir -p $(VENV)/no-ninja && printf '#!/bin/sh\nexit 1\n' > $(VENV)/no-ninja/ninja && chmod +x $(VENV)/no-ninja/ninja
	@grep -E '^(torch|$(FAIRSEQ))==' $(PINS) | cmp -s - $(BUILT) || { set -x; $(COMPILE) $(INSTALL) -q -c $(PINS) \
	  --no-build-isolation --no-deps --no-cache-dir --no-binary $(FAIRSEQ) --ignore-installed $(FAIRSEQ); }
