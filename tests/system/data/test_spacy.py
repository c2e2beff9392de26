"""Every language of the installed spaCy."""

import pkgutil
from importlib import import_module

from transformer.data.spacy_rules import rules_of


def test_the_patterns_of_every_language_are_known() -> None:
    """For another version of spaCy, `_SPACYS` needs the digests of its patterns."""
    languages = [module.name for module in pkgutil.iter_modules(import_module("spacy.lang").__path__) if module.ispkg]
    assert len([language for language in languages if rules_of(language)]) == 74
