"""`hardware.precision: auto` on CPUs of several kinds."""

import pytest
import torch

from transformer.checkpoint.device import prepare
from transformer.core.schema import Hardware

CPUS = {
    "AMD with AVX-512 bf16": ({"cpu_name": "AMD EPYC 9654", "avx512_bf16": True, "amx_bf16": False}, "bf16"),
    "Intel with AMX": ({"cpu_name": "Intel Xeon", "avx512_bf16": True, "amx_bf16": True}, "bf16"),
    "Intel whose AMX is hidden": ({"cpu_name": "Intel Xeon", "avx512_bf16": True, "amx_bf16": False}, "fp32"),
    "without bf16": ({"cpu_name": "AMD EPYC 7763", "avx512_bf16": False, "amx_bf16": False}, "fp32"),
    "not x86": ({"architecture": "aarch64", "bf16": True}, "fp32"),
}


@pytest.mark.parametrize("name", CPUS)
def test_auto_is_what_is_faster(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    capabilities, expected = CPUS[name]
    monkeypatch.setattr(torch.cpu, "get_capabilities", lambda: capabilities)
    hardware = Hardware(device="cpu", precision="auto", threads=torch.get_num_threads(), deterministic=True)
    assert prepare(hardware).precision == expected
