import sys

import pytest

from bathysphere.config.convert import override
from bathysphere.config.file import read_config_file
from bathysphere.config.run import RunConfig
from bathysphere.errors import BathysphereError

FIELDS = {"preset": "deep-sea", "steps": 500, "search": {"risk_coef": 2.5}, "values": {"hidden": [5, 5]}}
TEXTS = {
    "a.json": '{"preset": "deep-sea", "steps": 500, "search": {"risk_coef": 2.5}, "values": {"hidden": [5, 5]}}',
    "a.toml": 'preset = "deep-sea"\nsteps = 500\nsearch.risk_coef = 2.5\n[values]\nhidden = [5, 5]\n',
    "a.yaml": "preset: deep-sea\nsteps: 500\nsearch:\n  risk_coef: 2.5\nvalues: {hidden: [5, 5]}\n",
}


@pytest.mark.parametrize("name", [*TEXTS, "a.yml"])
def test_three_formats_say_the_same(name, tmp_path):
    path = tmp_path / name
    path.write_text(TEXTS.get(name, TEXTS["a.yaml"]))
    assert read_config_file(path) == FIELDS


@pytest.mark.parametrize(
    ("name", "content", "said"),
    [
        ("a.json", "{", "is not JSON"),
        ("a.toml", "a = ", "is not TOML"),
        ("a.yaml", "a: [", "is not YAML"),
        ("a.yaml", "- 1\n- 2\n", "should hold fields of a config by name"),
        ("a.json", "3", "should hold fields of a config by name"),
        ("a.ini", "a = 1", r"ends in \.json, \.toml, \.yaml, \.yml"),
    ],
)
def test_what_cannot_be_read_is_a_sentence(name, content, said, tmp_path):
    (tmp_path / name).write_text(content)
    with pytest.raises(BathysphereError, match=said):
        read_config_file(tmp_path / name)


@pytest.mark.parametrize("name", ["none.json", "none.toml", "none.yaml"])
def test_a_missing_file_is_a_sentence(name, tmp_path):
    with pytest.raises(BathysphereError, match=r"Cannot read .*No such file"):
        read_config_file(tmp_path / name)


def test_without_pyyaml_there_is_a_sentence(tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "yaml", None)
    (tmp_path / "a.yaml").write_text(TEXTS["a.yaml"])
    with pytest.raises(BathysphereError, match=r"needs PyYAML: pip install pyyaml\. JSON and TOML need nothing"):
        read_config_file(tmp_path / "a.yaml")


@pytest.mark.parametrize(
    ("name", "content"), [("a.json", '{"steps": 2e4}'), ("a.toml", "steps = 2e4"), ("a.yaml", "steps: 2e4")]
)
def test_large_numbers_may_be_written_with_an_exponent(name, content, tmp_path):
    (tmp_path / name).write_text(content)
    assert override(RunConfig(), read_config_file(tmp_path / name)).steps == 20_000
