"""scikit-learn's sklearn/svm/tests/test_svm.py against ours."""

from __future__ import annotations

from .sklearn_tests import MARKS, Difference, check_listed, load

pytestmark = MARKS

globals().update(load("test_svm"))


NO_PROBABILITY = Difference(
    "predict_proba|probA_|AssertionError|DID NOT WARN",
    "no option `probability`; CalibratedClassifierCV is the way, as scikit-learn says",
)
WEIGHTS = Difference(
    "Regex pattern did not match", "the message about weights of 0 or below is another"
)
NEGATIVE = Difference(
    "Negative values in data passed to `sample_weight`",
    "a negative weight is refused; it does not leave its row out",
)
INFINITE = Difference(
    "The 'C' parameter of", "an infinite one leaves a regression no box for a bound"
)
PRIVATE = Difference(
    "AttributeError: 'SVC' object has no attribute '_|ACTUAL|x: array",
    "the test looks into private attributes of scikit-learn",
)

DIFFERENCES: dict[str, Difference] = {
    "test_tweak_params": PRIVATE,
    "test_gamma_scale": PRIVATE,
    "test_svc_raises_error_internal_representation": PRIVATE,
    "test_probability": NO_PROBABILITY,
    "test_hasattr_predict_proba": NO_PROBABILITY,
    "test_unicode_kernel": NO_PROBABILITY._replace(before="1.9"),
    "test_svc_clone_with_callable_kernel": NO_PROBABILITY._replace(before="1.9"),
    "test_consistent_proba": NO_PROBABILITY._replace(before="1.9"),
    "test_probability_raises_futurewarning[*SVC-SVC]": NO_PROBABILITY._replace(
        since="1.9"
    ),
    "test_svc_nusvc_probA_probB_deprecated[SVC]": NO_PROBABILITY._replace(since="1.9"),
    "test_decision_function_shape[SVC]": Difference(
        "break_ties must be False", "refused by fit, not by predict", since="1.8"
    ),
    "test_crammer_singer_binary": Difference(
        "AssertionError",
        "a row has a decision of 0.003: at the default tol it is on the other side",
        before="1.8",
    ),
    "test_svc_invalid_break_ties_param[SVC]": Difference(
        "break_ties must be False", "refused by fit, not by predict"
    ),
    "test_negative_sample_weights_mask_all_samples[*-SVC]": WEIGHTS,
    "test_negative_sample_weights_mask_all_samples[*-SVR]": WEIGHTS,
    "test_negative_sample_weights_mask_all_samples[*-OneClassSVM]": WEIGHTS,
    "test_negative_weights_svc_leave_just_one_label[*-SVC]": WEIGHTS,
    "test_negative_weights_svc_leave_two_labels[partial-mask-label-1-SVC]": NEGATIVE,
    "test_negative_weight_equal_coeffs[partial-mask-label-1-SVC]": NEGATIVE,
    "test_bad_input[*]": Difference(
        "DID NOT RAISE", "a model of dense rows takes sparse ones too"
    ),
    "test_svc_nonfinite_params": Difference(
        "squared norm overflows", "found before the fit: another message"
    ),
    "test_sparse_precomputed[*]": Difference(
        "DID NOT RAISE", "a sparse kernel matrix is accepted"
    ),
    "test_svr_errors": Difference(
        "kernel", "a kernel function of a wrong shape is refused by fit already"
    ),
    "test_linearsvc_parameters[*-l1-hinge]": Difference(
        "loss='hinge' is not supported by penalty='l1'", "refused in other words"
    ),
    "test_linearsvc_parameters[True-l1-squared_hinge]": Difference(
        "DID NOT RAISE", "`dual` means nothing here: every loss is trained either way"
    ),
    "test_linearsvc_parameters[False-l2-hinge]": Difference(
        "DID NOT RAISE", "`dual` means nothing here: every loss is trained either way"
    ),
    "test_libsvm_convergence_warnings": Difference(
        "DID NOT WARN", "an epoch is many of LIBSVM's steps: two are enough"
    ),
    "test_linear_svm_convergence_warnings": Difference(
        "DID NOT WARN", "an epoch may be eight steps of Newton's method, which converge"
    ),
    "test_n_iter_libsvm[*-SVC-ndarray]": Difference(
        "AssertionError", "n_iter_ is one number for every model, the most of all pairs"
    ),
    "test_svm_with_infinite_C[*-SVR-*]": INFINITE,
}


def test_every_listed_test_is_there():
    check_listed(DIFFERENCES, globals())
