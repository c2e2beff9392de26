"""Engines that run workers and training processes on several machines; loaded by name."""
