"""params.yaml: typed sections and their one reader."""
