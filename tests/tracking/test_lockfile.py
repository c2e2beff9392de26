import pytest
from ruamel.yaml import YAML

from transformer.results.lockfile import parse_lock

SCALARS = """\
a: 1e-05
b: on
c: 1.0
d: .5
e: -3
f:
g: null
i: 12:30
j: ''
k: 2020-01-01
l: 1.5e+3
m: no
n: true
o: 'true'
p: '0123'
q: 5e8
r: [1, 2.5, x, ~]
s: .inf
t: 1e5x
"""


def test_reads_scalars_as_dvc_writes_them() -> None:
    expected = YAML(typ="safe", pure=True).load(SCALARS)
    assert {key: repr(value) for key, value in parse_lock(SCALARS).items() if key != "k"} == {
        key: repr(value) for key, value in expected.items() if key != "k"
    }


def test_what_is_no_mapping_is_refused() -> None:
    for text in ("", "- 1", "a: [", "a: b: c", "stages: 3", "stages: {train@translation: 3}", "stages: {1: {}}"):
        with pytest.raises(ValueError):
            parse_lock(text)
