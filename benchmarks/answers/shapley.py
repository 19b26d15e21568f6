"""Exact Shapley values beside the estimates of ``shap.KernelExplainer``.

    pip install shap
    python benchmarks/answers/shapley.py

It explains 20 rows with 50 background rows. Times are processor seconds; the time of
dualgap is the least of three. The error is the root of the mean squared difference from
the exact values, divided by the root of their mean square.
"""

from __future__ import annotations

import logging
import time

import numpy as np
import shap
from sklearn.datasets import load_breast_cancer, load_diabetes, load_wine
from sklearn.preprocessing import scale
from threadpoolctl import threadpool_limits

from dualgap import SVC, SVR
from dualgap.models import shapley_values

#: Data, model, and samples of subsets per row.
CASES = {
    "diabetes": (load_diabetes, SVR(C=100.0), [2048]),
    "wine": (load_wine, SVC(random_state=0), [2048, 8192]),
    "breast cancer": (load_breast_cancer, SVC(random_state=0), [2048, 8192, 32768]),
}


def main() -> None:
    logging.getLogger("shap").setLevel(logging.ERROR)
    for name, (load, model, samples) in CASES.items():
        X, y = load(return_X_y=True)
        X = scale(X)
        model.fit(X, y == 1 if name == "wine" else y)
        decide = getattr(model, "decision_function", model.predict)
        order = np.random.default_rng(0).permutation(len(X))
        background, rows = X[order[:50]], X[order[50:70]]
        times = []
        for _ in range(3):
            begin = time.process_time()
            values = shapley_values(model, rows, background).values
            times.append(time.process_time() - begin)
        print(f"{name}, {X.shape[1]} features: {min(times):.3f} s")
        for count in samples:
            np.random.seed(0)  # noqa: NPY002 (shap draws from it)
            begin = time.process_time()
            explainer = shap.KernelExplainer(decide, background)
            options = {"nsamples": count, "l1_reg": False, "silent": True}
            apart = explainer.shap_values(rows, **options) - values
            ratio = (time.process_time() - begin) / min(times)
            error = np.sqrt((apart**2).mean() / (values**2).mean())
            print(f"  {count} samples: {ratio:.1f} times as long, error {error:.2g}")


if __name__ == "__main__":
    with threadpool_limits(1):
        main()
