"""The device of a stage, and bf16 on CPUs of several kinds."""

import pytest
import torch

from transformer.core.errors import UserError
from transformer.core.validation import Hardware
from transformer.nn.device import loses_by_bf16, prepare

CPUS = {
    "AMD with AVX-512 bf16": ({"cpu_name": "AMD EPYC 9654", "avx512_bf16": True, "amx_bf16": False}, False),
    "Intel with AMX": ({"cpu_name": "Intel Xeon", "avx512_bf16": True, "amx_bf16": True}, False),
    "Intel whose AMX is hidden": ({"cpu_name": "Intel Xeon", "avx512_bf16": True, "amx_bf16": False}, True),
    "without bf16": ({"cpu_name": "AMD EPYC 7763", "avx512_bf16": False, "amx_bf16": False}, True),
    "not x86": ({"architecture": "aarch64", "bf16": True}, True),
}


@pytest.mark.parametrize("name", CPUS)
def test_where_bf16_is_slower_than_fp32(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    capabilities, expected = CPUS[name]
    monkeypatch.setattr(torch.cpu, "get_capabilities", lambda: capabilities)
    assert loses_by_bf16() == expected


@pytest.mark.skipif(torch.cuda.is_available(), reason="the device is there")
def test_a_missing_device_is_one_clear_line() -> None:
    with pytest.raises(UserError, match=r"hardware.device is `cuda`"):
        prepare(Hardware(device="cuda", precision="fp32", threads=1, deterministic=False, portable=False))
