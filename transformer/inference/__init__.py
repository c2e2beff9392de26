"""Exported models: search, engines, bundles, serving."""
