"""Pictures of what a model attends to and of what the code computes."""
