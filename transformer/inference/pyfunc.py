"""The MLflow model of a bundle, saved as code: MLflow runs this file when it loads the model."""

import math
import sys
from pathlib import Path
from typing import Any, TextIO

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
        """Find the bundle and its converted models; the first request opens one.

        Raises MlflowException if the process runs other code of this package than the model's.
        """
        bundle = Path(context.artifacts["bundle"])
        _require_own_code(bundle.parents[1])
        from transformer.inference.serving import Serving

        seconds = math.inf
        if "mlflow.pyfunc.scoring_server.app" in sys.modules:
            from mlflow.pyfunc import scoring_server

            scoring_server.parse_csv_input = _parse_csv
            # MLflow's server answers 504 after this time, and leaves the thread that computes to itself.
            seconds = MLFLOW_SCORING_SERVER_REQUEST_TIMEOUT.get() + _GRACE
        self.serving = Serving(bundle, seconds)


def _require_own_code(model: Path) -> None:
    """Raise MlflowException if `import transformer` has loaded other code than the model's: one process has one."""
    import transformer

    own, running = model / "code" / "transformer", Path(transformer.__file__).parent
    if own.is_dir() and not own.samefile(running) and _code(own) != _code(running):
        raise _Refusal(
            f"{model} has other code than {running}, which this process runs: load it in a process of its own"
        )


def _code(package: Path) -> dict[Path, bytes]:
    return {path.relative_to(package): path.read_bytes() for path in package.rglob("*.py")}


def _parse_csv(csv_input: TextIO, schema: object = None) -> pd.DataFrame:
    """Read a request in CSV as JSON is read: every field is a text, such as NA and 007, and every row counts."""
    try:
        rows = pd.read_csv(csv_input, header=None, dtype=str, na_filter=False, skip_blank_lines=False)
    except ValueError as error:
        raise _Refusal(f"the request is not CSV: {' '.join(str(error).split())}") from error
    return rows[1:].set_axis(rows.iloc[0].tolist(), axis="columns").reset_index(drop=True)


set_model(BundleModel())
