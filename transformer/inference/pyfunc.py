"""The MLflow model of a bundle, saved as code: MLflow runs this file when it loads the model."""

import math
import sys
from pathlib import Path
from typing import Any

import pandas as pd
from mlflow.environment_variables import MLFLOW_SCORING_SERVER_REQUEST_TIMEOUT
from mlflow.exceptions import MlflowException
from mlflow.models import set_model
from mlflow.protos.databricks_pb2 import INVALID_PARAMETER_VALUE
from mlflow.pyfunc.model import PythonModel, PythonModelContext

_GRACE = 1.0
"""Seconds of grace after MLflow's own timeout."""


class _Refusal(MlflowException):
    """A request that cannot be answered: status 400.

    Its message stays one line: MLflow's server would put the request's data before it.
    """

    def __init__(self, line: str) -> None:
        self._line = line
        super().__init__(line, error_code=INVALID_PARAMETER_VALUE)

    @property
    def message(self) -> str:
        return self._line

    @message.setter
    def message(self, given: str) -> None:
        pass


class _Answers:
    # Not in the model class itself, where MLflow would demand type hints and infer a signature without names from them.

    serving: Any

    def predict(self, context, model_input, params=None):  # type: ignore[no-untyped-def]
        """Map a data frame with a column `text` to one with the answers' columns (`Family.answers`).

        The index stays the same. params: as in the model's signature. Raises MlflowException when a text is missing,
        or the parameters do not fit.
        """
        from transformer.core.errors import UserError

        frame = pd.DataFrame(model_input)
        try:
            answers = self.serving.table(frame["text"], params or {})
        except TypeError as error:  # a missing text
            raise _Refusal(f"column `text`: {error}") from error
        except UserError as error:
            raise _Refusal(str(error)) from error
        return pd.DataFrame(answers, index=frame.index)


class BundleModel(_Answers, PythonModel):
    """Predict from raw text: one row per text, in the same order."""

    def load_context(self, context: PythonModelContext) -> None:
        """Find the bundle and its converted models; the first request opens one."""
        from transformer.inference.serving import Serving

        # MLflow's server answers 504 after this time, and leaves the thread that computes to itself.
        serves = "mlflow.pyfunc.scoring_server.app" in sys.modules
        seconds = MLFLOW_SCORING_SERVER_REQUEST_TIMEOUT.get() + _GRACE if serves else math.inf
        self.serving = Serving(Path(context.artifacts["bundle"]), seconds)


set_model(BundleModel())
