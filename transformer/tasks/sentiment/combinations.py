"""What the sections of a sentiment task must have in common: nothing beyond what each stage sees."""

from transformer.params.schema import StageParams


class Params(StageParams):
    """No sections depend on each other."""
