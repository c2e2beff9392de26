"""The MLflow model of a bundle, saved as code: MLflow runs this file when it loads the model."""

from typing import Any

import pandas as pd
from mlflow.exceptions import MlflowException
from mlflow.models import set_model
from mlflow.pyfunc.model import PythonModel, PythonModelContext


class _Answers:
    # Not in the model's own class, where MLflow asks for type hints and makes a signature without names from them.

    model: Any

    def predict(self, context, model_input, params=None):  # type: ignore[no-untyped-def]
        """A data frame with a column `text` to one with the answers' columns (`ANSWERS` in families/F/shown.py).

        It has the same index. Raises MlflowException where a text is missing.
        """
        frame = pd.DataFrame(model_input)
        try:
            answers = self.model.table(frame["text"])
        except TypeError as error:  # a missing text, or none: a server answers with status 400
            raise MlflowException.invalid_parameter_value(f"column `text`: {error}") from error
        return pd.DataFrame(answers, index=frame.index)


class BundleModel(_Answers, PythonModel):
    """Answers raw text: one row a text, in the same order."""

    def load_context(self, context: PythonModelContext) -> None:
        """Open the bundle."""
        import transformer

        self.model = transformer.load(context.artifacts["bundle"])


set_model(BundleModel())
