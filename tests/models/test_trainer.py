import json
from dataclasses import replace

import numpy as np
import pytest

from bathysphere.errors import BathysphereError
from bathysphere.models.config import RECIPES, ModelConfig
from bathysphere.models.evaluation import on_states
from bathysphere.models.learned import load_model
from bathysphere.models.model_file import read_model
from bathysphere.models.session import checkpoint_file, read_checkpoint, train_model
from tests.models.small import TRAINING, make_model_trainer

SHORT = replace(TRAINING, data=replace(TRAINING.data, boards=12, held_out=4), updates=60, report_every=20)


class Silent:
    """Watches, and remembers the reports; interrupts after as many looks as it is told."""

    def __init__(self, interrupt_after=None):
        self.reports, self.looks, self.num_boards, self.interrupt_after = [], 0, 0, interrupt_after

    def boards(self, total):
        self.total = total

        def tick():
            self.num_boards += 1

        return tick

    def progress(self, trainer):
        self.looks += 1
        if self.looks == self.interrupt_after:
            raise KeyboardInterrupt

    def report(self, trainer, tally):
        self.reports.append((trainer.num_updates, tally.frames_right))


def same(one, two):
    return one.keys() == two.keys() and all((one[name] == two[name]).all() for name in one if name != "seconds")


def test_it_learns_the_rules_of_small_boards():
    trainer = make_model_trainer()
    before = trainer.report()
    trainer.train(TRAINING.updates)
    after = trainer.report()
    assert before.frames_right < 0.5
    assert after.frames_right > 0.8
    assert after.changed_cells_right > 0.98
    assert after.missed_rewards <= 0.2 * after.solved
    assert trainer.last_report is after


@pytest.mark.parametrize("model", [ModelConfig(channels=4), ModelConfig(kind="paper", cells="sigmoid", channels=4)])
def test_same_seed_same_weights_and_resumed_is_uninterrupted(model):
    config = replace(SHORT, model=model)
    whole, first, second = (make_model_trainer(config) for _ in range(3))
    whole.train(60)
    first.train(25)
    second.load_state_dict({name: array.copy() for name, array in first.state_dict().items()})
    second.train(35)
    assert same(second.state_dict(), whole.state_dict())
    other = make_model_trainer(replace(config, data=replace(config.data, seed=1)))
    assert not same(other.state_dict(), make_model_trainer(config).state_dict())


def test_every_transition_is_seen_once_in_an_epoch():
    trainer = make_model_trainer(replace(SHORT, batch_size=50))
    seen = []
    for _ in range(trainer.updates_per_epoch):
        trainer.train(1)
        place = (trainer.num_updates - 1) % trainer.updates_per_epoch
        seen += trainer._order[place * 50 : (place + 1) * 50].tolist()
    expected = np.bincount(trainer.data.order(SHORT.data.solved_copies), minlength=len(trainer.data.before))
    counts = np.bincount(seen, minlength=len(expected))
    assert (counts <= expected).all()
    assert expected.sum() - counts.sum() < 50


def test_the_learning_rate_falls():
    linear = make_model_trainer(replace(SHORT, learning_rate=1.0))
    assert linear._learning_rate(0) == 1.0
    linear.num_updates = 45
    assert linear._learning_rate(3) == 0.25
    authors = make_model_trainer(replace(SHORT, schedule="epochs", learning_rate=5e-5))
    assert authors._learning_rate(2) == pytest.approx(4.1667e-5, rel=1e-4)  # as in the authors' checkpoint


def test_the_papers_recipe_is_the_papers():
    paper = RECIPES["paper"]
    assert (paper.model.kind, paper.model.cells, paper.model.channels) == ("paper", "sigmoid", 64)
    assert (paper.batch_size, paper.learning_rate, paper.schedule, paper.changed_weight) == (50, 5e-5, "epochs", 1.0)
    assert (paper.data.max_steps, paper.data.max_boxes, paper.data.solved_copies) == (40, 4, 100)


def test_a_session_writes_a_model_that_its_card_describes(tmp_path):
    out, watcher = tmp_path / "a.safetensors", Silent()
    card = train_model(SHORT, out, watcher)
    assert [updates for updates, _ in watcher.reports] == [20, 40, 60]
    assert watcher.num_boards == watcher.total == 16
    assert (card["updates"], card["stopped_by"]) == (60, "updates")
    assert read_model(out).card == json.loads(json.dumps(card))
    trainer = make_model_trainer(SHORT)
    model = load_model(out, trainer.domain)
    assert on_states(model, trainer.domain, trainer.held_out).report() == card["held_out"]


def test_an_interrupted_session_goes_on_as_if_nothing_had_happened(tmp_path, monkeypatch):
    monkeypatch.setattr("bathysphere.models.session._SAVE_SECONDS", 0.0)
    monkeypatch.setattr("bathysphere.models.session._UPDATES_AT_ONCE", 7)
    whole, cut = tmp_path / "whole.safetensors", tmp_path / "cut.safetensors"
    train_model(SHORT, whole, Silent())
    with pytest.raises(KeyboardInterrupt):
        train_model(SHORT, cut, Silent(interrupt_after=5))
    assert not cut.exists()
    assert 0 < int(read_checkpoint(cut)[1]["num_updates"]) < 60
    train_model(read_checkpoint(cut)[0], cut, Silent(), resume=True)
    assert same(read_model(cut).weights, read_model(whole).weights)


def test_stop_rules(tmp_path):
    card = train_model(replace(SHORT, frames_right=1e-9), tmp_path / "a.safetensors", Silent())
    assert (card["stopped_by"], card["updates"]) == ("frames_right", 20)
    card = train_model(replace(SHORT, seconds=1e-9), tmp_path / "b.safetensors", Silent())
    assert (card["stopped_by"], card["updates"]) == ("seconds", 20)  # at the first look at the clock


def test_what_cannot_go_on_is_refused_with_a_sentence(tmp_path):
    out = tmp_path / "a.safetensors"
    with pytest.raises(BathysphereError, match=r"There is no .*a\.training\.safetensors to go on from"):
        train_model(SHORT, out, Silent(), resume=True)
    with pytest.raises(BathysphereError, match=r"should be something\.safetensors in a folder that exists"):
        train_model(SHORT, tmp_path / "nowhere" / "a.safetensors", Silent())
    train_model(SHORT, out, Silent())
    with pytest.raises(BathysphereError, match=r"exists\. Choose another --out"):
        train_model(SHORT, out, Silent())
    with pytest.raises(BathysphereError, match="keeps its settings, and batch_size would change"):
        train_model(replace(SHORT, batch_size=7), out, Silent(), resume=True)
    longer = train_model(replace(SHORT, updates=80), out, Silent(), resume=True)
    assert longer["updates"] == 80
    checkpoint_file(out).write_bytes(b"nonsense")
    with pytest.raises(BathysphereError, match="is not the checkpoint of a model's training, or it is damaged"):
        read_checkpoint(out)
