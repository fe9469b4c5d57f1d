import signal
import threading

import pytest

from bathysphere.signals import ENDING, OF_TERMINAL, left_to_parent, listening


@pytest.fixture(autouse=True)
def as_before():
    before = {number: signal.getsignal(number) for number in ENDING}
    yield
    for number, handler in before.items():
        signal.signal(number, handler)


def test_signals_are_listened_to_and_then_as_they_were():
    heard = []
    before = [signal.getsignal(number) for number in ENDING]
    with listening(lambda number, frame: heard.append(number), ENDING):
        for number in ENDING:
            signal.raise_signal(number)
    assert heard == list(ENDING)
    assert [signal.getsignal(number) for number in ENDING] == before


def test_listening_can_be_ended_early():
    with listening(signal.SIG_IGN, (signal.SIGTERM,)) as restore:
        restore()
        assert signal.getsignal(signal.SIGTERM) is not signal.SIG_IGN


def test_who_uses_nohup_outlives_the_terminal():
    signal.signal(signal.SIGHUP, signal.SIG_IGN)
    heard = []
    with listening(lambda number, frame: heard.append(number), ENDING):
        signal.raise_signal(signal.SIGHUP)
        signal.raise_signal(signal.SIGTERM)
    assert heard == [signal.SIGTERM]


def test_other_threads_listen_to_nothing():
    seen = []

    def look():
        before = signal.getsignal(signal.SIGTERM)
        with listening(signal.SIG_IGN, ENDING) as restore:
            seen.append(signal.getsignal(signal.SIGTERM) is before)
            restore()

    thread = threading.Thread(target=look)
    thread.start()
    thread.join()
    assert seen == [True]


def test_a_process_that_follows_orders_leaves_the_terminal_to_its_parent():
    left_to_parent()
    assert all(signal.getsignal(number) is signal.SIG_IGN for number in OF_TERMINAL)
