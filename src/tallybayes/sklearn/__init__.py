"""The scikit-learn face: estimators that count exactly, forget, merge and explain, and are otherwise drop-in.

`GaussianNB`, `MultinomialNB`, `ComplementNB`, `BernoulliNB` and `CategoricalNB` take scikit-learn's parameters and have
its fitted attributes; `NaiveBayes` takes data frames of mixed columns with missing values as they are. All of them are
shells over `tallybayes.Tally` and `tallybayes.Model`: no mathematics here.

Imports `store` and the rooms below. Begin with `base`, what all of them share, then `mixed`.
`answer` stands alone: it knows which parameters `set_params` has changed since the last answer.
"""

from ..base.errors import MissingExtra

try:
    from sklearn.utils.validation import validate_data  # noqa: F401 - in scikit-learn since 1.6
except ImportError as error:
    raise MissingExtra(
        f"tallybayes.sklearn needs scikit-learn 1.6 or newer ({error})",
        hint="pip install 'tallybayes[sklearn]'",
    ) from error

from .categorical import CategoricalNB
from .gaussian import GaussianNB
from .mixed import NaiveBayes
from .onnx import register_onnx
from .words import BernoulliNB, ComplementNB, MultinomialNB

__all__ = ["BernoulliNB", "CategoricalNB", "ComplementNB", "GaussianNB", "MultinomialNB", "NaiveBayes", "register_onnx"]
