"""What every stage uses."""
