"""What runs other processes, beside those of Python."""

from importlib import import_module
from types import ModuleType

from transformer.core.errors import UserError


def ray_engine() -> ModuleType:
    """The code that uses Ray, loaded by name: it cannot change a byte, so no stage depends on it.

    Raises UserError when Ray is not installed.
    """
    try:
        import_module("ray")
    except ImportError as error:
        raise UserError(
            "runtime.engine is `ray`, which is not installed: run `pip install 'transformer[cluster]'`, or set it to"
            " `processes`"
        ) from error
    return import_module("transformer.engines.ray_engine")
