"""The thread that follows waits while questions are being answered, but not for ever."""

from __future__ import annotations

from threading import Event, Thread

from tollkeeper.engine.search.open_questions import OpenQuestions, giving_way

LONG_S = 3_600.0


def test_where_nobody_asks_nothing_waits() -> None:
    giving_way(OpenQuestions(), LONG_S)()


def test_it_waits_until_the_last_question_is_answered() -> None:
    questions, went_on = OpenQuestions(), Event()
    give_way = giving_way(questions, LONG_S)
    questions.begin()
    questions.begin()

    def follow() -> None:
        give_way()
        assert not questions.are_there()
        went_on.set()

    following = Thread(target=follow)
    following.start()
    questions.end()
    questions.end()
    following.join()
    assert went_on.is_set()


def test_it_goes_on_beside_questions_once_it_has_waited_as_long_as_it_may() -> None:
    questions = OpenQuestions()
    questions.begin()
    give_way = giving_way(questions, 0.001)
    for _ in range(3):
        give_way()
    assert questions.are_there()
