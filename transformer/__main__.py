"""`python -m transformer` is the command `transformer`."""

from transformer.cli.main import main

main()
