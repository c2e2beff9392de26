"""What the sections of a sentiment task must have in common: nothing beyond what each stage sees."""

from transformer.core.schema import StageParams


class Params(StageParams):
    """No sections depend on each other."""
