"""The stub of the compiled core is what nanobind writes about the core."""

from __future__ import annotations

from pathlib import Path

from nanobind.stubgen import StubGen

from dualgap import core


def test_the_stub_is_the_generated_one():
    generator = StubGen(core._core)
    generator.put(core._core)
    name = core._core.__name__
    stub = Path(core.__file__).with_name("_core.pyi").read_text("utf-8")
    assert generator.get().replace(name, "dualgap._core") == stub, (
        f"run: python -m nanobind.stubgen -m {name} -o src/dualgap/_core.pyi"
    )
