"""Open models with ONNX Runtime."""

from functools import partial
from pathlib import Path

import onnxruntime

from transformer.conversion.opened import Opened
from transformer.core.errors import UserError


def open_session(path: Path, threads: int | None) -> Opened[onnxruntime.InferenceSession]:
    """Open a model on the CPU; threads: None for all available. Raises UserError if the file is not a model."""
    return Opened(partial(_session, path.absolute()), threads)


def _session(path: Path, threads: int) -> onnxruntime.InferenceSession:
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = threads
    options.log_severity_level = 3
    # Idle threads that spin take the processor from the Python between two steps, and from other requests.
    options.add_session_config_entry("session.intra_op.allow_spinning", "0")
    try:
        return onnxruntime.InferenceSession(path.read_bytes(), options, providers=["CPUExecutionProvider"])
    except FileNotFoundError as error:
        raise UserError(f"{path} is missing: run `dvc repro` to convert the model again") from error
    except Exception as error:  # ONNX Runtime's own classes derive from Exception alone
        reason = " ".join(str(error).split())[:200]
        raise UserError(f"{path} is no readable ONNX model ({reason}): run `dvc repro` to convert it again") from error
