"""`python -m transformer.commands.vega`: write the script that draws DVC's plots, so that they need no network.

DVC's pages load Vega from a server. `.dvc/plots.html`, the template of those pages, loads this file first.
"""

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
