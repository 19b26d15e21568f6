"""Certificates in scikit-learn's HTML of estimators."""

from __future__ import annotations

from typing import TYPE_CHECKING

from sklearn.base import BaseEstimator
from sklearn.utils.metaestimators import available_if

if TYPE_CHECKING:
    from sklearn.utils._repr_html.estimator import _VisualBlock
    from sklearn.utils._repr_html.params import ParamsDict


def _alone(model: BaseEstimator) -> bool:
    """Whether a model has a certificate to show, and no other model inside."""
    return hasattr(model, "certificate_") and not hasattr(model, "estimator")


class CertificateHTMLMixin(BaseEstimator):
    """Mixin that adds the certificate to scikit-learn's HTML, in pipelines too.

    Its sentence stands below the name of the estimator, and its table is folded like
    the table of the parameters.
    """

    @available_if(_alone)
    def _sk_visual_block_(self) -> _VisualBlock:
        # In scikit-learn 1.6 this import fails, and the estimator has no such sentence.
        from sklearn.utils._repr_html.estimator import _VisualBlock

        return _VisualBlock(
            "single",
            self,
            names=type(self).__name__,
            name_details=str(self),
            name_caption=self.certificate_.message,
        )

    def _get_params_html(self, *args: object, **options: object) -> ParamsDict:
        params = super()._get_params_html(*args, **options)
        if hasattr(self, "certificate_"):
            inner = params._repr_html_inner() + self.certificate_._repr_html_()
            params._repr_html_inner = lambda: inner
        return params
