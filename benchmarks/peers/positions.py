"""Which positions the peers have."""

from transformer.core.errors import UserError
from transformer.nn.config import TransformerParams


def require_added(params: TransformerParams) -> None:
    """Raise UserError where ours are not added to the embeddings, as all peers do."""
    if params.positions not in ("learned", "sinusoidal"):
        raise UserError(
            f"model.positions is `{params.positions}`, and the peers add learned or sinusoidal ones to the embeddings:"
            " compare with the profile `seed`"
        )
