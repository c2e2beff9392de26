"""What the console commands do."""
