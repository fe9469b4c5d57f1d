"""The paper's numbers, typed here by hand from its text, are those that the tables show."""

import pytest

from bathysphere.studies import STUDIES

# study, setting, metric, as printed, as a number
PAPER = [
    ("toy-montezuma", "no-ensemble", "solved", "0/43", 0 / 43),
    ("toy-montezuma", "no-std", "solved", "2/40", 2 / 40),
    ("toy-montezuma", "std", "solved", "30/37", 30 / 37),
    ("toy-montezuma", "no-ensemble", "rooms", "4.7", 4.7),
    ("toy-montezuma", "no-std", "rooms", "5.8", 5.8),
    ("toy-montezuma", "std", "rooms", "17.5", 17.5),
    ("toy-montezuma-masks", "no-mask", "solved", "22/50", 22 / 50),
    ("toy-montezuma-masks", "no-mask", "rooms", "13.0", 13.0),
    ("toy-montezuma-masks", "mask", "solved", "30/37", 30 / 37),
    ("toy-montezuma-masks", "mask", "rooms", "17.5", 17.5),
    ("sokoban-single", "ensemble-10x10", "solved", "73%", 0.73),
    ("sokoban-single", "no-ensemble-10x10", "solved", "50%", 0.50),
    ("sokoban-single", "ensemble-8x8", "solved", "94%", 0.94),
    ("sokoban-single", "no-ensemble-8x8", "solved", "64%", 0.64),
    # "Large problem instances (N > 20) are solved only when exploration bonus is used."
    ("deep-sea", "no-ensemble", "solved-large", "none", 0.0),
    ("deep-sea", "kappa-0", "solved-large", "none", 0.0),
]


@pytest.mark.parametrize(("study", "setting", "metric", "text", "value"), PAPER)
def test_a_number(study, setting, metric, text, value):
    number = STUDIES[study].paper[setting, metric]
    assert number.text == text
    assert number.value == pytest.approx(value, abs=1e-12)
    assert number.source


def test_there_are_no_others_and_none_is_lost():
    shown = {
        (study.name, row.setting.name, row.metric.name)
        for study in STUDIES.values()
        for row in study.summarise([])
        if row.paper is not None
    }
    assert shown == {(study, setting, metric) for study, setting, metric, _, _ in PAPER}


@pytest.mark.parametrize("name", STUDIES)
def test_settings_are_real_and_different(name):
    study = STUDIES[name]
    assert study.name == name
    for budget in study.budgets:
        trials = study.trials(budget, 2)
        assert len({trial.folder for trial in trials}) == len(trials)
        first = {t.setting: t.config for t in trials if t.seed == 0 and t.case == trials[0].case}
        assert len(first) == len(study.settings)
        configs = list(first.values())
        assert all(configs.count(config) == 1 for config in configs)
        assert len({config.steps for config in configs}) == 1
    settings, cases = {s.name for s in study.settings}, {c.name for b in study.budgets.values() for c in b.cases}
    assert all(picture.setting in settings and picture.case in cases for picture in study.pictures)


def test_the_papers_budgets_are_the_papers():
    assert {t.config.steps for t in STUDIES["toy-montezuma"].trials("paper")} == {1_200_000}
    deep_sea = STUDIES["deep-sea"].trials("paper", 1)
    assert {t.config.steps for t in deep_sea} == {1_400_000}
    assert sorted({t.config.domain.size for t in deep_sea}) == list(range(5, 51))
    sokoban = STUDIES["sokoban-single"].trials("paper")
    boards = {t.setting: [] for t in sokoban}
    for trial in sokoban:
        boards[trial.setting].append(trial.config.domain.board_seed)
    assert all(numbers == list(range(250)) for numbers in boards.values())  # the same boards for all
    assert all(trial.config.stop.on_first_win for trial in sokoban)


def test_ensemble_sizes():
    trials = STUDIES["deep-sea-ensemble-size"].trials("small", 1)
    sizes = {(t.config.values.num_members, t.config.search.num_subsampled) for t in trials}
    assert sizes == {(1, 1), (5, 2), (10, 5), (20, 10), (30, 15)}
