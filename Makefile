# make demo    install into a fresh environment, train on real data, draw the picture
# make test    install into a fresh environment, run the fast test suite
# make test-all  the whole test suite: every case of every test, real clusters, peers,
#                the gallery, hypothesis at full strength
# make test-orders  the fast suite five times in random order with random hash seeds,
#                twice of them with two busy processes beside it
# make test-processors  the numerical tests once as each kind of processor would run
#                them, older ones than this included
# make mutations  break 40 lines at random: does the fast suite notice?
# make papers  run the papers' experiments and write their pages, in less than
#                three hours of processor time; needs the real data sets (DUALGAP_DATA)
# make lint    ruff and mypy
# make docs    build the pages, warnings are errors, into build/docs; look for dead links
#                and, with Chromium or Chrome installed, for what is too wide; build/look
#                has pictures of the pages; with DOCS_URL=https://... the address of the
#                pages, also a sitemap, and cards for links to them; with
#                REPOSITORY_URL=https://... a link to the code
# make wheel   build the wheel, install it into a clean environment, train there
# make sanitize  the tests under AddressSanitizer and UndefinedBehaviorSanitizer, and
#                what is threaded under ThreadSanitizer (Linux, GCC)
# make coverage  the lines and branches of Python and C++ that the tests run (Linux, GCC)
# make sanitize-quick  parser and threads of the core alone, as C++ programs
# make test-arm  the core compiled for 64-bit ARM, and its C++ test programs run there
#                under QEMU (Debian: g++-aarch64-linux-gnu qemu-user)
# make fuzz      the svmlight parser under libFuzzer (clang), then the Python surface
#                under atheris; fuzz-parser (FUZZ_RUNS=10000000), fuzz-python
#                (FUZZ_PYTHON_RUNS=100000 or FUZZ_PYTHON_SECONDS=300 each) and fuzz-models,
#                -stores, -sources, -peers, -matrices, -options alone
# make clean   remove what these made
#
# PYTHON=python3.12 make test   takes another Python (3.10 or later)
# VARIANTS=all make test   compiles the core for all levels of x86-64, as wheels have it,
#                and not for this machine's alone; continuous integration does
# PYTEST_ARGS="tests/data -x" make test   passes arguments to pytest

PYTHON ?= python3
PYTEST_ARGS ?=
VARIANTS ?= native

comma := ,

# The environments hold bytecode of what was imported, or every process compiles it anew.
unexport PYTHONDONTWRITEBYTECODE

.PHONY: demo test test-all test-orders test-processors test-arm mutations papers lint docs
.PHONY: wheel
.PHONY: try-test-processors try-wheel coverage sanitize sanitize-quick clean
.PHONY: fuzz fuzz-parser fuzz-python
.DELETE_ON_ERROR:

# The core is compiled once, into one wheel per Python version and choice of levels, and
# every environment installs that wheel.
version := $(shell $(PYTHON) -c 'import sys; print("%d.%d" % sys.version_info[:2])')
wheels := dist/python$(version)-$(VARIANTS)
installed := .installed-$(version)-$(VARIANTS)
headers := $(wildcard src/core/*.hpp src/core/*/*.hpp)
sources := pyproject.toml CMakeLists.txt README.md LICENSE \
  $(shell find src -type f -not -name '*.py[co]' -not -name '.*')
pip = $(1)/bin/python -m pip --disable-pip-version-check --quiet
cmake := --config-settings=cmake.define.DUALGAP_

# $(call new_venv,DIR): a fresh virtual environment
define new_venv
@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 10))' || { \
  echo "dualgap needs Python 3.10 or later; $(PYTHON) is $(version)." \
    "Try: PYTHON=python3.12 make $(MAKECMDGOALS)" >&2; exit 1; }
@$(PYTHON) -c 'import ensurepip, venv' 2>/dev/null || { \
  echo "$(PYTHON) cannot make virtual environments: it lacks venv or ensurepip." \
    "On Debian or Ubuntu: sudo apt install python3-venv" >&2; exit 1; }
rm -rf $(1)
$(PYTHON) -m venv $(1)
endef

# $(call install,DIR,EXTRAS): the newest wheel, then what its extras need; Python compiles
# what it imports, and that is the less
define install
rm -f $(1)/.installed-*
$(call pip,$(1)) install --force-reinstall --no-deps $(wheels)/dualgap-*.whl
$(call pip,$(1)) install --no-compile "$$(echo $(wheels)/dualgap-*.whl)[$(2)]"
endef

$(wheels)/.stamp: $(sources)
	$(call new_venv,.venv-build)
	rm -rf $(wheels)
	$(call pip,.venv-build) wheel --no-deps --wheel-dir $(wheels) \
	  $(cmake)VARIANTS=$(VARIANTS) .
	touch $@

# An environment lives until pyproject.toml or the Python version changes; a change of
# the sources only renews dualgap in it.
.venv-%/.python$(version): pyproject.toml
	$(call new_venv,.venv-$*)
	touch $@

.venv-demo/$(installed): .venv-demo/.python$(version) $(wheels)/.stamp
	$(call install,.venv-demo,cli$(comma)plot)
	touch $@

.venv-test/$(installed): .venv-test/.python$(version) $(wheels)/.stamp
	$(call install,.venv-test,test)
	touch $@

.venv-lint/$(installed): .venv-lint/.python$(version) $(wheels)/.stamp
	$(call install,.venv-lint,lint)
	touch $@

.venv-docs/$(installed): .venv-docs/.python$(version) $(wheels)/.stamp
	$(call install,.venv-docs,docs)
	touch $@

demo: .venv-demo/$(installed)
	.venv-demo/bin/python examples/demo.py

# The fast suite is to take 6 minutes of processor time, 3 on two cores: it prints its own.
# CI runs one random order, so that it says the same of the same commit.
pytest = PYTHONDONTWRITEBYTECODE= .venv-test/bin/python -m pytest -n 2 --durations=20 $(if $(CI),--randomly-seed=1)
test: .venv-test/$(installed)
	$(pytest) $(PYTEST_ARGS)

test-all: .venv-test/$(installed)
	$(pytest) --all $(PYTEST_ARGS)

test-orders: .venv-test/$(installed)
	for run in 1 2 3; do \
	  PYTHONHASHSEED=$$(shuf -i 1-4294967295 -n 1) $(pytest) $(PYTEST_ARGS) || exit; done
	busy() { while :; do :; done; }; busy & one=$$!; busy & two=$$!; \
	trap "kill $$one $$two" EXIT; for run in 4 5; do \
	  PYTHONHASHSEED=$$(shuf -i 1-4294967295 -n 1) $(pytest) $(PYTEST_ARGS) || exit; done

# These need all levels, whatever this machine's is.
test-processors wheel:
	$(MAKE) --no-print-directory VARIANTS=all try-$@

try-test-processors: .venv-test/$(installed)
	.venv-test/bin/python tests/processors.py -n 2 $(PYTEST_ARGS)

mutations: .venv-test/$(installed)
	$(call pip,.venv-test) install cmake ninja nanobind tree-sitter tree-sitter-cpp
	rm -rf build/mutations
	PATH="$(CURDIR)/.venv-test/bin:$$PATH" .venv-test/bin/python -m tests.mutations

papers: export DUALGAP_DATA ?= $(CURDIR)/../shared/data
papers: .venv-test/$(installed)
	for paper in sgd-revisited pegasos2011 pegasos2011-kernels pegasos-rows sdca2013 \
	  nanculef2014; do \
	  .venv-test/bin/dualgap reproduce $$paper --output docs/papers || exit; done
	.venv-test/bin/python examples/blood_cells.py --output docs/papers
	.venv-test/bin/python docs/claims.py

lint: .venv-lint/$(installed)
	.venv-lint/bin/ruff check
	.venv-lint/bin/ruff format --check
	.venv-lint/bin/mypy

# From scratch, for pages of names that are no more would stay; the gallery is kept.
docs: .venv-docs/$(installed)
	rm -rf build/doctrees docs/site/generated
	.venv-docs/bin/python -m sphinx -W --keep-going -q -d build/doctrees docs build/docs
	.venv-docs/bin/python docs/look.py

define try_wheel
from sklearn.datasets import load_breast_cancer
from sklearn.preprocessing import StandardScaler
import dualgap

dualgap.show_versions()
X, y = load_breast_cancer(return_X_y=True)
model = dualgap.LinearSVC(tol=1e-4).fit(StandardScaler().fit_transform(X), y)
print(f"\n{model.certificate_}")
assert 0 <= model.certificate_.relative_gap <= 1e-4
endef
export try_wheel

# From / so that nothing of the checkout can be imported by accident.
try-wheel: $(wheels)/.stamp
	$(call new_venv,.venv-wheel)
	$(call pip,.venv-wheel) install $(wheels)/dualgap-*.whl
	cd / && '$(CURDIR)/.venv-wheel/bin/python' -I -c "$$try_wheel"
	@ls -l $(wheels)/dualgap-*.whl

# The core once more, one variant with the sanitizers in it, found before the one that
# the test environment holds. Python itself is not built with them: their runtime is
# loaded first, and libstdc++ with it, whose exceptions it watches; leaks are not looked
# for. Tests that cannot pass there skip themselves and say why (`unsanitized`).
ONE_VARIANT := $(if $(filter x86_64,$(shell uname -m)),v3)
build/asan/.stamp build/tsan/.stamp: build/%/.stamp: .venv-test/$(installed)
	rm -rf build/$*
	$(call pip,.venv-test) install --no-deps --target build/$* \
	  --config-settings=install.strip=false $(cmake)VARIANTS=$(ONE_VARIANT) \
	  $(cmake)SANITIZE=$(if $(filter tsan,$*),THREAD,ON) .
	touch $@

# The core once more, one variant that counts which of its lines and branches run. pip
# would throw away the folder it builds in, and with it what gcov needs.
build/coverage/.stamp: .venv-test/$(installed)
	rm -rf build/coverage
	$(call pip,.venv-test) install --no-deps --target build/coverage \
	  --config-settings=build-dir=build/coverage/objects --config-settings=install.strip=false \
	  $(cmake)VARIANTS=$(ONE_VARIANT) \
	  $(cmake)COVERAGE=ON .
	touch $@

coverage: build/coverage/.stamp
	env PYTHONPATH="$(CURDIR)/build/coverage" .venv-test/bin/python \
	  tests/measure_coverage.py -n 2 $(PYTEST_ARGS)

CXX ?= g++
library = $$($(CXX) -print-file-name=lib$(1).so)
sanitized = env OPENBLAS_NUM_THREADS=1 PYTHONPATH="$(CURDIR)/build/$(1)" \
  LD_PRELOAD="$(call library,$(1)) $(call library,stdc++)" \
  ASAN_OPTIONS=detect_leaks=0:allocator_may_return_null=1 \
  UBSAN_OPTIONS=print_stacktrace=1 \
  TSAN_OPTIONS=ignore_noninstrumented_modules=1 \
  .venv-test/bin/python -m pytest -q -p no:cacheprovider

# What starts threads: in the core, in joblib's pools and those of the files. Not
# Ctrl-C, for ThreadSanitizer holds signals back.
threaded := tests/test_core.py tests/training/test_loop.py tests/trust/test_load.py \
  $(addprefix tests/estimators/,test_callbacks.py test_linear_svc.py \
    test_multiclass.py test_partial_fit.py test_path.py test_svc.py) \
  $(addprefix tests/data/,test_conversion.py test_store.py test_svmlight.py) \
  tests/kernels/test_gram.py tests/kernels/test_tile.py \
  $(addprefix tests/solvers/kernel/,test_block.py test_nystroem.py test_regression.py) \
  $(addprefix tests/solvers/,test_crammer_singer.py papers/test_cutting_planes.py \
    test_interior_point.py test_streaming.py)

sanitize: build/asan/.stamp build/tsan/.stamp sanitize-quick
	$(call sanitized,asan) -n 2 $(or $(PYTEST_ARGS),tests)
	$(call sanitized,tsan) -k "not ctrl_c" $(or $(PYTEST_ARGS),$(threaded))

# What continuous integration has time for: the parser on all of its corpus, and the
# core's threads, as programs of C++ that need no Python.
build/sanitize/corpus: tests/fuzz/svmlight.cpp tests/fuzz/read_corpus.cpp $(headers)
	mkdir -p $(@D)
	$(CXX) -std=c++20 -O1 -g1 -fsanitize=address,undefined \
	  -fno-sanitize-recover=all -DFUZZING_BUILD_MODE_UNSAFE_FOR_PRODUCTION \
	  $(filter %.cpp,$^) -pthread -o $@

build/sanitize/threads: tests/core/threads.cpp $(headers)
	mkdir -p $(@D)
	$(CXX) -std=c++20 -O1 -g1 -fsanitize=thread \
	  -DFUZZING_BUILD_MODE_UNSAFE_FOR_PRODUCTION -Isrc/core $< -pthread -o $@

sanitize-quick: build/sanitize/corpus build/sanitize/threads
	$(PYTHON) -m zipfile -e tests/corpus/svmlight.zip build/sanitize/found
	build/sanitize/corpus tests/corpus/svmlight build/sanitize/found
	build/sanitize/threads

# Programs are optimised, for only then does the compiler fuse products and sums, and
# linked statically, so that QEMU needs no libraries of ARM.
ARM_CXX ?= aarch64-linux-gnu-g++
ARM_RUN ?= $(firstword $(shell command -v qemu-aarch64 || \
  command -v qemu-aarch64-static) qemu-aarch64)
arm_programs := $(addprefix build/arm/,corpus threads tile_tails certificate_sums \
  checksums checksums-crc)
build/arm/corpus: tests/fuzz/svmlight.cpp tests/fuzz/read_corpus.cpp
build/arm/checksums-crc: tests/core/checksums.cpp
build/arm/threads build/arm/tile_tails build/arm/certificate_sums build/arm/checksums: \
  build/arm/%: tests/core/%.cpp
build/arm/corpus build/arm/threads: flags := -DFUZZING_BUILD_MODE_UNSAFE_FOR_PRODUCTION
build/arm/checksums-crc: flags := -march=armv8-a+crc
$(arm_programs): $(headers)
	mkdir -p $(@D)
	$(ARM_CXX) -std=c++20 -O2 -Wall -Wextra -Wno-psabi -static $(flags) -Isrc/core \
	  $(filter %.cpp,$^) -pthread -o $@

# The extension itself, by its own CMakeLists.txt. Python's headers are those of this
# machine. Debian's include pyconfig.h by the processor's name: this machine's again.
build/arm/core/.stamp: $(sources)
	$(call new_venv,.venv-arm)
	$(call pip,.venv-arm) install cmake ninja nanobind
	rm -rf $(@D)
	mkdir -p $(@D)/include
	ln -s "$$($(PYTHON) -c 'from sysconfig import *; \
	  print(get_path("include") + "/../" + str(get_config_var("MULTIARCH")))')" \
	  $(@D)/include/aarch64-linux-gnu
	PATH="$(CURDIR)/.venv-arm/bin:$$PATH" cmake -S . -B $(@D) -G Ninja --log-level=WARNING \
	  -DCMAKE_SYSTEM_NAME=Linux -DCMAKE_SYSTEM_PROCESSOR=aarch64 \
	  -DCMAKE_CXX_COMPILER=$(ARM_CXX) -DCMAKE_BUILD_TYPE=None \
	  -DCMAKE_CXX_FLAGS="-O1 -Wno-psabi -I$(CURDIR)/$(@D)/include" \
	  -DPython_EXECUTABLE="$(CURDIR)/.venv-arm/bin/python" \
	  -DPython_INCLUDE_DIR="$$($(PYTHON) -c \
	    'import sysconfig; print(sysconfig.get_path("include"))')"
	.venv-arm/bin/cmake --build $(@D) --parallel 2
	touch $@

test-arm:
	@for tool in $(ARM_CXX) $(ARM_RUN); do command -v $$tool >/dev/null || { \
	  echo "make test-arm needs $$tool." \
	    "On Debian or Ubuntu: sudo apt install g++-aarch64-linux-gnu qemu-user" >&2; \
	  exit 1; }; done
	$(MAKE) --no-print-directory -j 2 $(arm_programs)
	$(MAKE) --no-print-directory build/arm/core/.stamp
	$(PYTHON) -m zipfile -e tests/corpus/svmlight.zip build/arm/found
	$(ARM_RUN) build/arm/corpus tests/corpus/svmlight build/arm/found
	for program in threads tile_tails certificate_sums checksums checksums-crc; do \
	  $(ARM_RUN) build/arm/$$program || exit 1; done

FUZZ_RUNS ?= 10000000
build/fuzz/svmlight: tests/fuzz/svmlight.cpp src/core/svmlight.hpp
	mkdir -p build/fuzz/found
	clang++ -std=c++20 -O2 -g -fsanitize=fuzzer,address,undefined \
	  -fno-sanitize-recover=all -DFUZZING_BUILD_MODE_UNSAFE_FOR_PRODUCTION -o $@ $<

fuzz-parser: build/fuzz/svmlight
	build/fuzz/svmlight -runs=$(FUZZ_RUNS) -max_len=256 -timeout=10 \
	  -artifact_prefix=build/fuzz/ -dict=tests/fuzz/svmlight.dict \
	  build/fuzz/found tests/corpus/svmlight

# Each ends after so many runs or seconds, whichever comes first.
FUZZ_PYTHON_RUNS ?= 100000
FUZZ_PYTHON_SECONDS ?= 300
.venv-fuzz/$(installed): .venv-fuzz/.python$(version) $(wheels)/.stamp
	$(call install,.venv-fuzz,fuzz)
	touch $@

surfaces := models stores sources peers matrices options lines
.PHONY: $(addprefix fuzz-,$(surfaces))
fuzz-python: $(addprefix fuzz-,$(surfaces))
$(addprefix fuzz-,$(surfaces)): fuzz-%: .venv-fuzz/$(installed)
	mkdir -p build/fuzz/$*
	OPENBLAS_NUM_THREADS=1 .venv-fuzz/bin/python tests/fuzz/run.py $* \
	  -runs=$(FUZZ_PYTHON_RUNS) -max_total_time=$(FUZZ_PYTHON_SECONDS) -max_len=512 \
	  -len_control=0 -timeout=30 -artifact_prefix=build/fuzz/$*- build/fuzz/$*

fuzz: fuzz-parser fuzz-python

clean:
	rm -rf dist build/arm build/asan build/coverage build/docs build/doctrees build/fuzz
	rm -rf build/look build/mutations
	rm -rf build/sanitize build/tsan
	rm -rf docs/site/generated docs/auto_examples
	rm -rf .venv-arm .venv-build .venv-demo .venv-docs .venv-fuzz .venv-lint .venv-test
	rm -rf .venv-wheel
	rm -rf convergence.png .mypy_cache .pytest_cache .ruff_cache .hypothesis
