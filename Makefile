# make demo    install into a fresh environment, train on real data, draw the picture
# make test    install into a fresh environment, run the whole test suite
# make lint    ruff and mypy
# make docs    build the pages, warnings are errors, into build/docs
# make wheel   build the wheel, install it into a clean environment, train there
# make clean   remove what these made
#
# PYTHON=python3.12 make test   takes another Python (3.10 or later)
# PYTEST_ARGS="tests/io -x" make test   passes arguments to pytest

PYTHON ?= python3
PYTEST_ARGS ?=

comma := ,

.PHONY: demo test lint docs wheel clean
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

docs: .venv-docs/.installed
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

clean:
	rm -rf build/docs build/doctrees docs/site/generated docs/auto_examples dist .venv-build .venv-demo .venv-docs .venv-lint .venv-test .venv-wheel
	rm -rf convergence.png .mypy_cache .pytest_cache .ruff_cache .hypothesis
