"""The paper's numbers, typed here by hand from its text, are those that the tables show."""

from dataclasses import replace
from functools import cache

import pytest

from bathysphere.studies import STUDIES

# study, setting, metric, as printed, as a number
PAPER = [
    ("toy-montezuma", "no-ensemble", "solved", "0/43", 0 / 43),
    ("toy-montezuma", "no-std", "solved", "2/40", 2 / 40),
    ("toy-montezuma", "std", "solved", "30/37", 30 / 37),
    ("toy-montezuma", "no-ensemble", "rooms", "4.7", 4.7),
    # "... no-ensemble in 30 out of 43 cases does not leave behind the first room."
    ("toy-montezuma", "no-ensemble", "first-room", "30/43", 30 / 43),
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
    # "After 10 million steps in the real environment, our method reaches 89.0% win rate, compared to 84.7% ..."
    ("sokoban-multi", "ensemble", "win-rate", "89.0%", 89.0),
    ("sokoban-multi", "no-ensemble", "win-rate", "84.7%", 84.7),
    # "... approximately at a 40% win-rate mark or, equivalently, 10000 games."
    ("sokoban-multi", "ensemble", "games-40", "about 10,000", 10_000),
    ("sokoban-learned-model", "rules", "win-rate", "89.0%", 89.0),
    # "In 99.5% of cases, the Sokoban frames predicted by the learned model matched the ground truth."
    ("sokoban-learned-model", "learned", "boards-right", "99.5%", 99.5),
    ("sokoban-learned-model", "learned", "false-rewards", "≤ 1e-6 of moves", 1.0),
    ("sokoban-transfer", "random-5", "win-rate", "0.7%", 0.7),
    ("sokoban-transfer", "as-it-is-1-5", "win-rate", "4.9%", 4.9),
    ("sokoban-transfer", "linear-2-5", "win-rate", "7.1%", 7.1),
    ("sokoban-transfer", "hidden-2-5", "win-rate", "7.1%", 7.1),
    ("sokoban-transfer", "linear-3-5", "win-rate", "8.5%", 8.5),
    ("sokoban-transfer", "hidden-3-5", "win-rate", "8.5%", 8.5),
    ("sokoban-transfer", "random-4", "win-rate", "0.7%", 0.7),
    ("sokoban-transfer", "as-it-is-1-4", "win-rate", "4.3%", 4.3),
    ("sokoban-transfer", "linear-2-4", "win-rate", "5.6%", 5.6),
    ("sokoban-transfer", "hidden-2-4", "win-rate", "5.6%", 5.6),
    ("sokoban-transfer", "linear-3-4", "win-rate", "7.3%", 7.3),
    ("sokoban-transfer", "hidden-3-4", "win-rate", "7.3%", 7.3),
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
        for is_built_on_others in (False, True):  # what is compared with one another has the same steps
            alike = [s.name for s in study.settings if (s.towers is not None) == is_built_on_others]
            learning = [name for name in alike if first[name].stop.episodes is None]
            assert len({first[name].steps for name in learning}) <= 1
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


def test_what_the_multi_board_studies_vary():
    def varied(name, value):
        return [value(trial.config) for trial in STUDIES[name].trials("paper", 1)]

    assert varied("sokoban-ensemble-size", lambda c: c.values.num_members) == [1, 3, 5, 7]
    assert varied("sokoban-ensemble-size", lambda c: c.learning.batch_size) == [32, 96, 160, 224]
    assert varied("sokoban-targets", lambda c: c.learning.target) == ["factual_rewards", "bootstrap", "mixed"]
    assert varied("sokoban-passes", lambda c: c.search.passes) == [5, 10, 20, 40]
    assert varied("sokoban-step-limit", lambda c: c.learning.max_steps) == [100, 200, 400]
    for name in ("ensemble-size", "targets", "passes", "step-limit"):
        study = STUDIES[f"sokoban-{name}"]
        assert {t.config.preset for t in study.trials("paper", 1)} == {"paper/sokoban"}
        assert {t.config.preset for t in study.trials("small", 1)} == {"sokoban"}


def test_the_papers_budgets_of_sokoban_on_many_boards():
    trials = STUDIES["sokoban-multi"].trials("paper")
    assert {t.config.steps for t in trials} == {10_000_000}
    assert {t.seed for t in trials} == set(range(10))
    presets = {t.setting: t.config.preset for t in trials}
    assert presets == {"ensemble": "paper/sokoban", "no-ensemble": "paper/sokoban-no-ensemble", "ours": "sokoban"}


def test_the_learned_model_is_compared_with_the_rules_and_nothing_else():
    study = STUDIES["sokoban-learned-model"]
    for budget, presets in (
        ("paper", {"paper/sokoban", "paper/sokoban-learned-model"}),
        ("small", {"sokoban", "sokoban-learned-model"}),
    ):
        rules, learned = study.trials(budget, 1)
        assert {rules.config.preset, learned.config.preset} == presets
        assert (rules.config.model, learned.config.model) == (None, "sokoban")
        assert replace(learned.config, model=None, preset=rules.config.preset) == rules.config
    assert {t.config.steps for t in study.trials("paper")} == {10_000_000}
    assert {t.seed for t in study.trials("paper")} == set(range(5))


@cache
def transfer_trials(budget):
    return STUDIES["sokoban-transfer"].trials(budget, 2)


class TestTransfer:
    def trials(self, setting, budget="paper"):
        return [trial for trial in transfer_trials(budget) if trial.setting == setting]

    def test_pre_training_is_the_papers(self):
        for depth in (5, 4):
            trials = self.trials(f"tower-{depth}")
            assert [t.config.domain.board_seed for t in trials] == [
                0,
                1,
                2,
                3,
            ]  # for runs 0 and 1 of up to three towers
            config = trials[0].config
            assert (config.domain.num_boards, config.domain.max_steps, config.stop.win_rate) == (10, 100, 0.9)
            assert (config.values.conv_layers, config.values.conv_channels, config.values.dense) == (depth, 64, 128)
            assert (config.values.num_members, config.optimiser.name, config.optimiser.l2) == (1, "tf_rmsprop", 0.01)
            learning = config.learning
            assert (learning.target, learning.hindsight, learning.hindsight_as) == ("factual_rewards", 0.2, "unsolved")
            assert (learning.batch_size, learning.steps_per_update, learning.min_episodes) == (32, 100, 100)
            assert learning.replay.capacity == 100_000
            assert (config.search.episode_penalty, config.search.dead_end_value) == (2.0, -1.0)
            assert config.steps == 2_300_000
        assert STUDIES["sokoban-transfer"].budgets["paper"].seeds == 20

    @pytest.mark.parametrize("budget", ["small", "paper"])
    def test_what_is_built_on_it_learns_on_fresh_boards(self, budget):
        for depth in (5, 4):
            for count in (1, 2, 3):
                for kind in ("linear", "hidden"):
                    trial = self.trials(f"{kind}-{count}-{depth}", budget)[1]
                    assert [str(t) for t in trial.towers] == [f"tower-{depth}/seed{1 + i}" for i in range(count)]
                    config = trial.config
                    assert (config.values.num_towers, config.values.aggregator) == (count, kind)
                    assert (config.domain.num_boards, config.optimiser.l2, config.stop.win_rate) == (None, 0.0, None)
                    assert (config.learning.target, config.learning.hindsight) == ("factual_rewards", 0.2)
                    assert trial.evaluation >= 200
            for name, count in (("random", 0), ("as-it-is-1", 1)):
                config = self.trials(f"{name}-{depth}", budget)[0].config
                assert (config.values.num_towers, config.stop.episodes) == (count, 1)
                assert config.learning.min_episodes >= config.batch  # so that it ends before it learns
