"""Engines that run workers and training processes on several machines; imported by name."""
