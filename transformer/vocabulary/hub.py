"""A given vocabulary from the Hub."""

from pathlib import Path

from transformer.core.errors import UserError


def vocabulary_from_hub(repository: str, revision: str) -> Path:
    """Download (or find in the Hub's local cache) `vocab.txt` of a model repository at a revision.

    Raises UserError when the Hub cannot be reached or has no such file.
    """
    import httpx  # the Hub's client and its transport: here, since no other vocabulary needs them
    from huggingface_hub import hf_hub_download
    from huggingface_hub.errors import HfHubHTTPError, LocalEntryNotFoundError

    try:
        return Path(hf_hub_download(repository, "vocab.txt", revision=revision))
    except (HfHubHTTPError, LocalEntryNotFoundError, OSError, ValueError, httpx.HTTPError) as error:
        raise UserError(
            f"cannot get vocab.txt of {repository} at {revision[:12]} from the Hub ({type(error).__name__}):"
            " set vocab.source to `path` and vocab.path to a local vocab.txt, or check the network and HF_ENDPOINT"
        ) from error
