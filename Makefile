# make demo    install into a fresh environment, train on real data, draw the picture
# make test    install into a fresh environment, run the whole test suite
# make lint    ruff and mypy
# make docs    build the pages, warnings are errors, into build/docs
# make wheel   build the wheel, install it into a clean environment, train there
# make sanitize  the tests under AddressSanitizer and UndefinedBehaviorSanitizer, and
#                what is threaded under ThreadSanitizer (Linux, GCC)
# make fuzz      the svmlight parser under libFuzzer (clang); FUZZ_RUNS=10000000
# make clean   remove what these made
#
# PYTHON=python3.12 make test   takes another Python (3.10 or later)
# PYTEST_ARGS="tests/io -x" make test   passes arguments to pytest

PYTHON ?= python3
PYTEST_ARGS ?=

comma := ,

.PHONY: demo test lint docs wheel sanitize sanitize-quick fuzz clean
.DELETE_ON_ERROR:

# The core is compiled once, into one wheel per Python version, and every environment
# installs that wheel.
version := $(shell $(PYTHON) -c 'import sys; print("%d.%d" % sys.version_info[:2])')
wheels := dist/python$(version)
sources := pyproject.toml CMakeLists.txt README.md LICENSE \
  $(shell find src -type f -not -name '*.py[co]' -not -name '.*')
pip = $(1)/bin/python -m pip --disable-pip-version-check --quiet

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

# $(call install,DIR,EXTRAS): the newest wheel, then what its extras need
define install
$(call pip,$(1)) install --force-reinstall --no-deps $(wheels)/dualgap-*.whl
$(call pip,$(1)) install "$$(echo $(wheels)/dualgap-*.whl)[$(2)]"
endef

$(wheels)/.stamp: $(sources)
	$(call new_venv,.venv-build)
	rm -rf $(wheels)
	$(call pip,.venv-build) wheel --no-deps --wheel-dir $(wheels) .
	touch $@

# An environment lives until pyproject.toml or the Python version changes; a change of
# the sources only renews dualgap in it.
.venv-%/.python$(version): pyproject.toml
	$(call new_venv,.venv-$*)
	touch $@

.venv-demo/.installed: .venv-demo/.python$(version) $(wheels)/.stamp
	$(call install,.venv-demo,cli$(comma)plot)
	touch $@

.venv-test/.installed: .venv-test/.python$(version) $(wheels)/.stamp
	$(call install,.venv-test,test)
	touch $@

.venv-lint/.installed: .venv-lint/.python$(version) $(wheels)/.stamp
	$(call install,.venv-lint,lint)
	touch $@

.venv-docs/.installed: .venv-docs/.python$(version) $(wheels)/.stamp
	$(call install,.venv-docs,docs)
	touch $@

demo: .venv-demo/.installed
	.venv-demo/bin/python examples/demo.py

test: .venv-test/.installed
	.venv-test/bin/python -m pytest -n 2 $(PYTEST_ARGS)

lint: .venv-lint/.installed
	.venv-lint/bin/ruff check
	.venv-lint/bin/ruff format --check
	.venv-lint/bin/mypy

# From scratch, for pages of names that are no more would stay; the gallery is kept.
docs: .venv-docs/.installed
	rm -rf build/doctrees docs/site/generated
	.venv-docs/bin/python -m sphinx -W --keep-going -q -d build/doctrees docs build/docs

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
wheel: $(wheels)/.stamp
	$(call new_venv,.venv-wheel)
	$(call pip,.venv-wheel) install $(wheels)/dualgap-*.whl
	cd / && '$(CURDIR)/.venv-wheel/bin/python' -I -c "$$try_wheel"
	@ls -l $(wheels)/dualgap-*.whl

# The core once more, one variant with the sanitizers in it, before the one that the test
# environment holds. Python itself is not built with them: the runtime is loaded first,
# leaks are not looked for, and tests that limit or measure memory are left out.
SANITIZED := v3
build/asan/.stamp build/tsan/.stamp: build/%/.stamp: .venv-test/.installed
	rm -rf build/$*
	$(call pip,.venv-test) install --no-deps --target build/$* \
	  -C cmake.define.DUALGAP_VARIANTS=$(SANITIZED) \
	  -C cmake.define.DUALGAP_SANITIZE=$(if $(filter tsan,$*),THREAD,ON) .
	touch $@

CXX ?= g++
sanitized = env OPENBLAS_NUM_THREADS=1 PYTHONPATH=build/$(1) \
  LD_PRELOAD=$$($(CXX) -print-file-name=lib$(1).so) \
  ASAN_OPTIONS=detect_leaks=0:allocator_may_return_null=1 \
  UBSAN_OPTIONS=print_stacktrace=1 TSAN_OPTIONS=ignore_noninstrumented_modules=1 \
  .venv-test/bin/python -m pytest -q -p no:cacheprovider
by_memory := --ignore tests/solvers/test_memory.py --ignore tests/trust/test_security.py
threaded := tests/test_core.py tests/io/test_svmlight.py tests/kernel/test_gram.py \
  tests/kernel/test_block.py

sanitize: build/asan/.stamp build/tsan/.stamp
	$(call sanitized,asan) $(by_memory) tests
	$(call sanitized,tsan) $(threaded)

# What continuous integration has time for.
sanitize-quick: build/asan/.stamp
	$(call sanitized,asan) tests/test_core.py tests/io/test_svmlight.py \
	  tests/trust/test_bad_input.py

FUZZ_RUNS ?= 10000000
build/fuzz/svmlight: tests/fuzz/svmlight.cpp src/core/svmlight.hpp
	mkdir -p build/fuzz/found
	clang++ -std=c++20 -O2 -g -fsanitize=fuzzer,address,undefined \
	  -fno-sanitize-recover=all -DFUZZING_BUILD_MODE_UNSAFE_FOR_PRODUCTION -o $@ $<

fuzz: build/fuzz/svmlight
	build/fuzz/svmlight -runs=$(FUZZ_RUNS) -max_len=256 -timeout=10 \
	  -artifact_prefix=build/fuzz/ -dict=tests/fuzz/svmlight.dict \
	  build/fuzz/found tests/corpus/svmlight

clean:
	rm -rf dist build/asan build/docs build/doctrees build/fuzz build/tsan
	rm -rf docs/site/generated docs/auto_examples
	rm -rf .venv-build .venv-demo .venv-docs .venv-lint .venv-test .venv-wheel
	rm -rf convergence.png .mypy_cache .pytest_cache .ruff_cache .hypothesis
