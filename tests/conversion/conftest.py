"""A converted model of each family."""

import pytest

from tests.conversion.converting import Conversion


@pytest.fixture(scope="module", params=["translation-transformer", "sentiment-transformer"])
def converted(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Conversion:
    conversion = Conversion(request.param, tmp_path_factory.mktemp(request.param))
    conversion.run()
    return conversion
