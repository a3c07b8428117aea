"""Tiles fit the shared memory of the GPU, for every shape that can occur."""

from itertools import product
from types import SimpleNamespace

import pytest

torch = pytest.importorskip("torch")

from vicinal.kernels.gpu import tiling  # noqa: E402
from vicinal.kernels.gpu.panel import WIDEST, feature_blocks  # noqa: E402

H200 = (227 - 11) * 2**10
LIMITS = [H200, (163 - 11) * 2**10, (99 - 11) * 2**10, (64 - 11) * 2**10]
WIDTHS = sorted({NB * KB for NB, KB in map(feature_blocks, range(1, WIDEST + 1))})
PARTS = (1, 2, 3)


def bytes_of(tile, features, values, parts):
    """float16 parts of the rows, and of the columns of all stages; one part is counted as two."""
    columns = tile.stages * tile.width
    numbers = tile.height * features + columns * features + columns * values
    return 2 * max(parts, 2) * numbers


@pytest.mark.parametrize("limit", LIMITS)
def test_what_is_chosen_fits(limit):
    possible = [(w, p) for w, p in product(WIDTHS, PARTS) if tiling.tiles_fit(w, p, limit)]
    assert (32, 3) in possible
    for features, parts in possible:
        tile = tiling.log_sum_tiling(features, parts, limit)
        assert bytes_of(tile, features, 0, parts) <= limit
        widest = tiling.value_width(features, parts, limit)
        values = {NB * KB for NB, KB in map(feature_blocks, range(1, widest + 1))}
        for extra in {0} | values:
            tile = tiling.product_tiling(features, extra, parts, limit)
            assert bytes_of(tile, features, extra, parts) <= limit


def test_an_h200_takes_everything():
    assert all(tiling.tiles_fit(w, p, H200) for w, p in product(WIDTHS, PARTS))
    narrower = {(w, p) for w, p in product(WIDTHS, PARTS) if tiling.value_width(w, p, H200) < 128}
    assert narrower == {(256, 3)}


def test_a_small_gpu_says_no():
    assert not tiling.tiles_fit(256, 2, LIMITS[2])
    with pytest.raises(ValueError, match="engine 'torch'"):
        tiling.product_tiling(256, 0, 2, LIMITS[2])


@pytest.mark.parametrize(
    ("device", "properties", "expected"),
    [
        ("cuda", {"shared_memory_per_block_optin": 99 * 2**10}, 88 * 2**10),
        ("cuda", {}, H200),  # older versions of PyTorch do not say
        ("cpu", {"shared_memory_per_block_optin": 1}, H200),  # Triton's interpreter
    ],
)
def test_the_limit_is_the_gpus(monkeypatch, device, properties, expected):
    told = SimpleNamespace(**properties)
    monkeypatch.setattr(torch.cuda, "get_device_properties", lambda device: told)
    assert tiling.memory_for_tiles(torch.device(device)) == expected
