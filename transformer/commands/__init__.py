"""The console commands; `cli.py` reads their arguments."""
