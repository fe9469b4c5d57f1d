import pytest

from bathysphere.errors import BathysphereError
from bathysphere.studies.records import read_records, write_records

RUN = {
    "setting": "ours",
    "case": "",
    "size": 5,
    "seed": 0,
    "state": "finished",
    "error": None,
    "config_hash": "12345e67",
    "steps": 1000,
    "win_rate_100": 0.1 + 0.2,
    "rooms": 7.0,
    "tiny": 1e-300,
    "is_odd": True,
    "is_even": False,
    "solved_step": None,
    "stopped_by": "steps",
    "commit": "1234567",
    "machine": 'A "fast" one, 2 cores',
    "processor": "avx avx2",
    "curve": {"env_steps": [10, 20], "win_rate_1000": [0.0, 1 / 3], "graph_size": [None, 50.0]},
}
FAILED = {
    "setting": "ours",
    "case": "N8",
    "size": 8,
    "seed": 1,
    "state": "failed",
    "error": "no luck:\rnone, \u00e9",
    "config_hash": "ff",
    "steps": 1000,
}


@pytest.fixture
def files(tmp_path):
    return tmp_path / "results.csv", tmp_path / "curves.csv"


def kinds(record):
    return {name: type(value) for name, value in record.items()}


def test_types_and_values_come_back_exactly(files):
    write_records([RUN, FAILED], *files)
    first, second = read_records(*files)
    assert first == RUN
    assert kinds(first) == kinds(RUN)
    assert [type(size) for size in first["curve"]["graph_size"]] == [type(None), float]
    assert {name: value for name, value in second.items() if value is not None} == FAILED  # no curve, and no result


def test_a_study_without_curves_has_one_file(files):
    write_records([FAILED], files[0], None)
    assert read_records(*files) == [FAILED]
    assert not files[1].exists()


def test_no_runs_at_all(files):
    write_records([], *files)
    assert read_records(*files) == []


def test_another_table_is_refused(files):
    files[0].write_text("a,b\n1,2\n")
    with pytest.raises(BathysphereError, match="lacks the columns setting, case, seed, state"):
        read_records(*files)
