"""The corpora that the project carries: seeded generators, one folder a task."""
