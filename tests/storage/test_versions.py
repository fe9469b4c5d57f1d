"""What a run notes of the processor: features, by a fake one, as those of this one are not known here."""

import llvmlite.binding
import pytest

from bathysphere.storage.versions import collect_versions, find_features


@pytest.mark.parametrize(
    ("features", "noted"),
    [
        ({"sse2": True, "fma": True, "avx2": True, "avx": True, "avx512f": False}, "avx avx2 fma"),
        ({"fma": True, "avx512f": True, "avx2": True, "aes": True}, "avx2 avx512f fma"),
        ({"neon": True, "crc": True}, "neon"),
        ({}, None),
    ],
)
def test_features_that_change_numbers_are_noted_in_order(features, noted, monkeypatch):
    monkeypatch.setattr(llvmlite.binding, "get_host_cpu_features", lambda: features)
    assert find_features() == noted
    assert collect_versions()["processor"] == noted


def test_a_processor_that_is_not_known(monkeypatch):
    def fail():
        raise RuntimeError("failed to get host cpu features.")

    monkeypatch.setattr(llvmlite.binding, "get_host_cpu_features", fail)
    assert find_features() is None
