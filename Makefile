# CONTRIBUTING.md says what each of these does and how long it takes:
#   demo test test-all test-orders test-processors test-arm lint docs wheel papers
#   coverage mutations sanitize sanitize-quick fuzz clean
# PYTHON=python3.12 another Python; VARIANTS=all the core for all levels of x86-64, as in
# wheels; PYTEST_ARGS="tests/data -x"; DOCS_URL, REPOSITORY_URL addresses for the pages

PYTHON ?= python3
VARIANTS ?= $(if $(filter wheel test-processors,$(MAKECMDGOALS)),all,native)
# The environments hold bytecode of what was imported, or every process compiles it anew.
unexport PYTHONDONTWRITEBYTECODE
.PHONY: demo test test-all test-orders test-processors test-arm mutations papers lint docs \
  wheel coverage sanitize sanitize-quick fuzz clean
.DELETE_ON_ERROR:
.SECONDARY:

# Every environment installs the one wheel with the extra of its name. It lives until
# pyproject.toml or the Python version changes; other changes only renew dualgap in it.
version := $(shell $(PYTHON) -c 'import sys; print("%d.%d" % sys.version_info[:2])')
wheels := dist/python$(version)-$(VARIANTS)
installed := .installed-$(version)-$(VARIANTS)
sources := pyproject.toml CMakeLists.txt README.md LICENSE \
  $(shell find src -type f -not -name '*.py[co]' -not -name '.*')
pip = $(1)/bin/python -m pip --disable-pip-version-check --quiet
cmake := --config-settings=cmake.define.DUALGAP_

.venv-%/.python$(version): pyproject.toml
	$(PYTHON) -m venv --clear .venv-$*
	touch $@

$(wheels)/.stamp: .venv-build/.python$(version) $(sources)
	$(info Compiling the core: one to two minutes on two cores.)rm -rf $(wheels)
	$(call pip,.venv-build) wheel --no-deps --wheel-dir $(wheels) $(cmake)VARIANTS=$(VARIANTS) .
	touch $@

.venv-%/$(installed): .venv-%/.python$(version) $(wheels)/.stamp
	rm -f .venv-$*/.installed-*
	$(call pip,.venv-$*) install --force-reinstall --no-deps $(wheels)/dualgap-*.whl
	$(call pip,.venv-$*) install --no-compile "$$(echo $(wheels)/dualgap-*.whl)[$*]"
	touch $@

demo: .venv-plot/$(installed)
	.venv-plot/bin/python examples/demo.py

# CI runs one random order, so that it says the same of the same commit.
pytest = .venv-test/bin/python -m pytest -n 2 --durations=20 $(if $(CI),--randomly-seed=1)
test test-all: .venv-test/$(installed)
	$(pytest) $(if $(filter test-all,$@),--all) $(PYTEST_ARGS)

# Five orders, the last two beside two busy processes.
test-orders: .venv-test/$(installed)
	trap 'kill $$(jobs -p)' EXIT; busy() { while :; do :; done; }; for run in 1 2 3 4 5; do \
	  if [ $$run = 4 ]; then busy & busy & fi; \
	  PYTHONHASHSEED=$$(shuf -i 1-4294967295 -n 1) $(pytest) $(PYTEST_ARGS) || exit; done

test-processors: .venv-test/$(installed)
	.venv-test/bin/python tests/processors.py -n 2 $(PYTEST_ARGS)

# From / so that nothing of the checkout can be imported by accident.
wheel: .venv-wheel/.python$(version) $(wheels)/.stamp
	$(call pip,.venv-wheel) install --force-reinstall $(wheels)/dualgap-*.whl
	cd / && '$(CURDIR)/.venv-wheel/bin/python' -I '$(CURDIR)/tests/try_wheel.py'

lint: .venv-lint/$(installed)
	.venv-lint/bin/ruff check && .venv-lint/bin/ruff format --check
	.venv-lint/bin/mypy && .venv-lint/bin/basedpyright --pythonpath .venv-lint/bin/python

# From scratch, because pages of names that are gone would stay; the gallery is kept.
docs: .venv-docs/$(installed)
	rm -rf build/doctrees docs/site/generated
	.venv-docs/bin/python -m sphinx -W --keep-going -q -d build/doctrees docs build/docs
	.venv-docs/bin/python docs/look.py

papers: export DUALGAP_DATA ?= $(CURDIR)/../shared/data
papers: .venv-test/$(installed)
	for paper in sgd-revisited pegasos2011 pegasos2011-kernels pegasos-rows sdca2013 nanculef2014; \
	  do .venv-test/bin/dualgap reproduce $$paper --output docs/papers || exit; done
	.venv-test/bin/python examples/blood_cells.py --output docs/papers && \
	  .venv-test/bin/python docs/claims.py

# The C++ programs of tests/core are built and run by CMake's presets.
programs = cd tests/core && PATH="$(CURDIR)/.venv-tools/bin:$$PATH" cmake --workflow --preset
.venv-tools/.cmake: .venv-tools/.python$(version)
	$(call pip,.venv-tools) install cmake ninja nanobind
	touch $@

sanitize-quick: .venv-tools/.cmake
	$(programs) address
	$(programs) thread

test-arm: .venv-tools/.cmake
	$(programs) arm

mutations: .venv-test/$(installed)
	rm -rf build/mutations
	$(call pip,.venv-test) install cmake ninja tree-sitter tree-sitter-cpp
	PATH="$(CURDIR)/.venv-test/bin:$$PATH" .venv-test/bin/python -m tests.mutations $(MUTATIONS)

# The core once more, with counters or sanitizers in it, found before the installed one.
build/%/.stamp: .venv-test/$(installed)
	rm -rf build/$*
	$(call pip,.venv-test) install --no-deps --target build/$* \
	  --config-settings=build-dir=build/$*/objects --config-settings=install.strip=false \
	  $(cmake)VARIANTS=$(if $(filter x86_64,$(shell uname -m)),v3) \
	  $(cmake)$(if $(filter coverage,$*),COVERAGE=ON,SANITIZE=$(if $(filter tsan,$*),THREAD,ON)) .
	touch $@

coverage: build/coverage/.stamp
	PYTHONPATH="$(CURDIR)/build/coverage" .venv-test/bin/python \
	  tests/measure_coverage.py -n 2 $(PYTEST_ARGS)

sanitize: build/asan/.stamp build/tsan/.stamp sanitize-quick
	.venv-test/bin/python tests/sanitize.py $(PYTEST_ARGS)

fuzz: .venv-fuzz/$(installed) .venv-tools/.cmake
	$(programs) fuzz
	.venv-fuzz/bin/python tests/fuzz/run.py

clean:
	rm -rf build dist .venv-* docs/site/generated docs/auto_examples convergence.png \
	  .mypy_cache .pytest_cache .ruff_cache .hypothesis
