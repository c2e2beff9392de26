"""`python -m transformer` is the command `transformer`."""

from transformer.cli import main

main()
