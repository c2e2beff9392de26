"""Vega without the network, for the template of DVC's plots: `python -m transformer.commands.vega`."""

from pathlib import Path

import vl_convert

from transformer.core.files import atomic_write

SCRIPT = Path(".dvc", "tmp", "vega.js")
_VEGA_LITE = "5.21"  # DVC's templates are written for version 5


def main() -> None:
    """Write Vega, Vega-Lite and Vega-Embed to one script."""
    with atomic_write(SCRIPT) as stream:
        stream.write(vl_convert.javascript_bundle("window.vegaEmbed = vegaEmbed;", _VEGA_LITE).encode())


if __name__ == "__main__":
    main()
