"""The position encodings that the peers support."""

from transformer.core.errors import UserError
from transformer.nn.config import TransformerParams


def require_added(params: TransformerParams) -> None:
    """Raise UserError unless our positions are added to the embeddings, as in all peers."""
    if params.positions not in ("learned", "sinusoidal"):
        raise UserError(
            f"model.positions is `{params.positions}`, but the peers support only learned or sinusoidal positions:"
            " compare with the profile `seed`"
        )
