"""The MLflow model of a bundle, saved as code: MLflow runs this file when it loads the model."""

from typing import Any

import pandas as pd
from mlflow.exceptions import MlflowException
from mlflow.models import set_model
from mlflow.pyfunc.model import PythonModel, PythonModelContext


class _Answers:
    # Not in the model class itself, where MLflow would demand type hints and infer a signature without names from them.

    model: Any

    def predict(self, context, model_input, params=None):  # type: ignore[no-untyped-def]
        """Map a data frame with a column `text` to one with the answers' columns (`ANSWERS` in families/F/shown.py).

        The index stays the same. Raises MlflowException when a text is missing.
        """
        frame = pd.DataFrame(model_input)
        try:
            answers = self.model.table(frame["text"])
        except TypeError as error:  # a missing text: a server responds with status 400
            raise MlflowException.invalid_parameter_value(f"column `text`: {error}") from error
        return pd.DataFrame(answers, index=frame.index)


class BundleModel(_Answers, PythonModel):
    """Predicts from raw text: one row per text, in the same order."""

    def load_context(self, context: PythonModelContext) -> None:
        """Open the bundle."""
        import transformer

        self.model = transformer.load(context.artifacts["bundle"])


set_model(BundleModel())
