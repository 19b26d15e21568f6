"""The certificate in the notebook, below scikit-learn's picture of an estimator."""

from __future__ import annotations

import html
from typing import Any

from ..certificate import Certificate, percent
from ._binary import problem_labels, problem_name

__all__ = ["CertificateHTMLMixin"]

_HEAD = ("", "status", "within", "primal", "dual", "epochs", "seconds", "solver")


class CertificateHTMLMixin:
    """Adds a table of certificates to the HTML that scikit-learn makes.

    ``_repr_html_inner`` and ``_repr_mimebundle_`` are what notebooks ask for in every
    version from 1.6 on; what they return is left as it is.
    """

    def _repr_html_inner(self) -> str:
        return super()._repr_html_inner() + certificate_table(self)  # type: ignore[misc]

    def _repr_mimebundle_(self, **kwargs: Any) -> dict[str, str]:
        bundle: dict[str, str] = super()._repr_mimebundle_(**kwargs)  # type: ignore[misc]
        if "text/html" in bundle:
            bundle["text/html"] += certificate_table(self)
        return bundle


def certificate_table(estimator: Any) -> str:
    """An HTML table of the certificates of an estimator; empty if it has none."""
    found = getattr(estimator, "certificate_", None)
    if found is None:
        return ""
    certificates = [found] if isinstance(found, Certificate) else found
    names = [""] * len(certificates)
    if len(certificates) > 1:
        names = [problem_name(label) for label in problem_labels(estimator)]
        names, certificates = (
            [*names, "all together"],
            [*certificates, Certificate.total(certificates)],
        )
    rows = "".join(
        _row([name, *_cells(certificate)], "td")
        for name, certificate in zip(names, certificates, strict=True)
    )
    return (
        '<details open class="dualgap-certificate"><summary>Certificate</summary>'
        f"<table>{_row(_HEAD, 'th')}{rows}</table></details>"
    )


def _cells(c: Certificate) -> list[str]:
    within = percent(c.relative_gap) if c.relative_gap < float("inf") else "unknown"
    if c.about:
        within += f" of the optimum of {c.about}"
    status = c.status.label if c.status else ""
    return [
        status, within, f"{c.primal:.9g}", f"{c.dual:.9g}", str(c.epochs),
        f"{c.seconds:.3g}", c.solver,
    ]  # fmt: skip


def _row(cells: Any, tag: str) -> str:
    inner = "".join(f"<{tag}>{html.escape(cell)}</{tag}>" for cell in cells)
    return f"<tr>{inner}</tr>"
