"""What is claimed of models that no solver has just returned; see derived.py."""

from __future__ import annotations

import logging

import pytest

from . import derived
from .verifier import exact

# How many problems are drawn; benchmarks/trust/verify_derived.py draws thousands.
DRAWN = {
    derived.compressed_linear: 60,
    derived.compressed_kernel: 30,
    derived.together: 25,
    derived.spanned: 20,
    derived.one_class: 40,
    derived.streamed: 12,
    derived.regression: 60,
    derived.plane: 60,
}


def test_every_kind_is_drawn():
    assert set(DRAWN) == set(derived.KINDS.values())


@pytest.mark.parametrize("draw", DRAWN, ids=lambda draw: draw.__name__)
def test_no_claim_is_false(draw, caplog):
    caplog.set_level(logging.CRITICAL)
    claims = [claim for seed in range(DRAWN[draw]) for claim in draw(seed)]
    assert [false for claim in claims for false in derived.check(claim)] == []
    assert len(claims) >= DRAWN[draw] / 2


def test_the_check_sees_false_claims():
    claim = next(derived.plane(0))
    assert derived.check(claim) == []
    above = exact([2.0 * abs(claim.certificate.primal) + 1.0])[0]
    assert "P is above" in derived.check(claim._replace(primal=above))[0]
    assert "D is below" in derived.check(claim._replace(dual=-above - 1))[0]
