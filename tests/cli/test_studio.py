"""The verb that opens the studio: what it says when it cannot."""

import socket
import sys

from bathysphere.cli import main


def test_without_the_extra_it_says_what_to_install(tmp_path, monkeypatch, capsys):
    for name in list(sys.modules):
        if name.startswith("bathysphere.studio"):
            monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, "nicegui", None)
    assert main(["studio", str(tmp_path)]) == 2
    assert "needs nicegui, which is not installed: pip install 'bathysphere[studio]'" in capsys.readouterr().err


def test_a_missing_folder_and_a_taken_port_are_sentences(tmp_path, capsys):
    assert main(["studio", str(tmp_path / "none")]) == 2
    assert "There is no folder" in capsys.readouterr().err
    with socket.create_server(("127.0.0.1", 0)) as taken:
        assert main(["studio", str(tmp_path), "--no-open", "--port", str(taken.getsockname()[1])]) == 2
    assert "Choose another --port" in capsys.readouterr().err
    assert main(["studio", str(tmp_path), "--no-open", "--port", "99999"]) == 2
    assert "Choose another --port" in capsys.readouterr().err
