"""The bugs of `make mutations` can still be put into the code."""

import pytest

from tests.mutations import MUTATIONS, ROOT, Mutation


@pytest.mark.parametrize("mutation", MUTATIONS, ids=lambda mutation: mutation.file)
def test_the_text_occurs_once_and_the_tests_exist(mutation: Mutation) -> None:
    assert (ROOT / mutation.file).read_text(encoding="utf-8").count(mutation.old) == 1
    assert (ROOT / mutation.tests.split()[0]).is_file()
