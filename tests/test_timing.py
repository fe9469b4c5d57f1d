import time

from bathysphere.timing import slowness, timed


def test_what_a_thing_returns_and_what_it_works():
    def work():
        end = time.process_time() + 0.02
        while time.process_time() < end:
            pass
        return "done"

    result, seconds = timed(work)
    assert result == "done"
    assert 0.02 <= seconds < 0.1  # of the processor, however many others want it


def test_something_that_waits_for_others_takes_what_the_clock_shows():
    assert timed(lambda: time.sleep(0.02))[1] >= 0.02


def test_time_that_others_took_does_not_count(monkeypatch):
    shown = iter([0.0, 5.0])
    monkeypatch.setattr("time.perf_counter", lambda: next(shown))  # five seconds have gone, nothing was given away
    assert timed(lambda: None)[1] < 0.1


def test_how_slow_a_machine_is_can_be_told():
    assert slowness() > 0


def test_what_is_shorter_than_a_step_of_the_clock_takes_some_time(monkeypatch):
    monkeypatch.setattr("time.process_time", lambda: 7.0)
    assert timed(lambda: None)[1] > 0
