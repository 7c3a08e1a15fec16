"""scikit-learn's own tests of its naive Bayes, run on ours: the same file with its import redirected."""

from __future__ import annotations

import importlib.util
import pathlib
import types

import numpy as np
import pytest

pytestmark = pytest.mark.filterwarnings("ignore:alpha too small")  # its own settings let warnings pass

# Test functions that pin a fault of scikit-learn or one of its private names, and why
LEFT_OUT = {
    "test_gnb_check_update_with_no_data": "calls the private GaussianNB._update_mean_variance; our moments are sums",
}
_IMPORT = "from sklearn.naive_bayes import"
# Up to 1.8 a test compares logs of about −1e-13 by their relative error; it gets the tolerance that it has in 1.9
_SHARP = "assert_allclose(est.predict_log_proba(X2), log_prob_x_y)"
_AS_IN_1_9 = "assert_allclose(est.predict_log_proba(X2), log_prob_x_y, atol=1e-12)"


def redirected() -> types.ModuleType:
    """scikit-learn's test module with our estimators in place of its own."""
    spec = importlib.util.find_spec("sklearn.tests.test_naive_bayes")
    assert spec is not None and spec.origin is not None
    source = pathlib.Path(spec.origin).read_text(encoding="utf-8")
    assert source.count(_IMPORT) == 1 and source.count(_SHARP) + source.count(_AS_IN_1_9) == 1
    source = source.replace(_SHARP, _AS_IN_1_9)
    module = types.ModuleType("redirected")
    exec(compile(source.replace(_IMPORT, "from tallybayes.sklearn import"), spec.origin, "exec"), vars(module))
    return module


def with_lists(test):
    """The same test with every list of parameters made a list: pytest is to refuse generators."""
    marks = getattr(test, "pytestmark", [])
    test.pytestmark = [pytest.mark.parametrize(m.args[0], list(m.args[1])).mark for m in marks]
    return test


MODULE = redirected()
FOUND = {name: test for name, test in vars(MODULE).items() if name.startswith("test_")}
globals().update({name: with_lists(test) for name, test in FOUND.items() if name not in LEFT_OUT})


@pytest.fixture(params=[0, 1, 2])
def global_random_seed(request):
    return request.param


@pytest.fixture(params=[np.float32, np.float64])
def global_dtype(request):
    return request.param


def test_the_redirected_module_has_our_estimators_and_nearly_all_of_its_tests():
    assert MODULE.GaussianNB.__module__ == "tallybayes.sklearn.gaussian"
    assert len(FOUND) > 30 and set(LEFT_OUT) <= set(FOUND) and len(LEFT_OUT) <= 5
