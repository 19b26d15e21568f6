"""Certificate table in notebooks, below scikit-learn's diagram of an estimator."""

from __future__ import annotations

from sklearn.base import BaseEstimator


class CertificateHTMLMixin(BaseEstimator):
    """Mixin that adds a table of certificates to scikit-learn's HTML.

    Notebooks call ``_repr_html_inner`` and ``_repr_mimebundle_`` in every version of
    scikit-learn from 1.6 on. The table is appended to their result.
    """

    def _repr_html_inner(self) -> str:
        return super()._repr_html_inner() + _table(self)

    def _repr_mimebundle_(self, **kwargs: object) -> dict[str, str]:
        bundle: dict[str, str] = super()._repr_mimebundle_(**kwargs)
        if "text/html" in bundle:
            bundle["text/html"] += _table(self)
        return bundle


def _table(estimator: BaseEstimator) -> str:
    if not hasattr(estimator, "certificate_"):
        return ""
    found: str = estimator.certificate_._repr_html_()
    return found
