"""Text from the files of a study reaches its page as text: no markup, no script in it acts."""

from dataclasses import replace

from bathysphere.studies.page import make_page
from tests.studies.tiny import TINY

HOSTILE = "<script>alert(1)</script>\"'><img src=x onerror=alert(1)>&"


def test_no_text_of_a_study_becomes_markup():
    study = replace(TINY, title=HOSTILE, about=HOSTILE, source=HOSTILE)
    summary = dict.fromkeys(("command", "commit", "machine", "processor"), HOSTILE)
    failed = dict.fromkeys(("setting", "case", "seed", "error"), HOSTILE) | {"state": "failed"}
    page = make_page(study, "small", summary, [], [failed], "<svg></svg>", [])
    assert "<script" not in page
    assert "<img" not in page
    assert page.count("&lt;script&gt;") == 12
