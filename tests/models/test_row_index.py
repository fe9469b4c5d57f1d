"""Numbers for rows of bytes, against a dict."""

import numpy as np
import pytest

from bathysphere.models import row_index
from bathysphere.models.row_index import RowIndex


@pytest.mark.parametrize("width", [0, 1, 3, 15])
def test_it_is_a_dict_of_rows(width, monkeypatch):
    monkeypatch.setattr(row_index, "_FIRST_ROOM", 4)
    rng = np.random.default_rng(width)
    index, twin = RowIndex(width), {}
    for _ in range(40):
        rows = rng.integers(4, size=(int(rng.integers(0, 20)), width)).astype(np.uint8)
        if rng.random() < 0.5:
            rows = np.asfortranarray(rows)
        expected = [twin.get(row.tobytes(), -1) for row in rows]
        assert index.find(rows).tolist() == expected
        assert index.add(rows).tolist() == [twin.setdefault(row.tobytes(), len(twin)) for row in rows]
        assert len(index) == len(twin)
        assert [row.tobytes() for row in index.rows] == list(twin)
