from everkept.recall.said import Said


def test_a_sentence_is_said_whatever_its_case_spaces_end_and_speaker() -> None:
    said = Said(["I live  in Lisbon."])
    assert said.holds("i live in lisbon")
    assert said.holds("ana: I live in Lisbon!")
    assert not said.holds("I live in Lisbon now.")
    assert not said.holds("I live in Lisbon. I like tea very much.")


def test_a_text_of_several_lines_is_said_when_each_of_them_is() -> None:
    said = Said(["ana: I live in Lisbon.\nbob: And I live in Porto."])
    assert said.holds("I live in Lisbon.\nAnd I live in Porto.")
    assert not said.holds("I live in Lisbon.\nAnd I live in Rome.")


def test_a_short_answer_means_something_only_where_it_stands() -> None:
    assert not Said(["Yes."]).holds("Yes.")


def test_a_name_stands_at_the_start_of_a_line() -> None:
    said = Said(["At 10:30 sharp: the train to Porto leaves."])
    assert said.holds("at 10:30 sharp: the train to Porto leaves")
    assert not said.holds("At 10:the train to Porto leaves.")
