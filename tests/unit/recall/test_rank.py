import numpy as np
import pytest

from everkept.domain.passage import Analysed, analyse
from everkept.recall import rank
from everkept.recall.question import read_question
from everkept.recall.table import Columns
from everkept.recall.words import KnownWords, Words
from everkept.store.search import KINDS

DAY_US = 86_400_000_000


def window_of(*turns: tuple[str, str], kind: str = "turn") -> rank.Window:
    """One sitting; every turn is a candidate."""
    names = list(dict.fromkeys(speaker for speaker, _ in turns))
    rows, terms = [], []
    for seq, (speaker, text) in enumerate(turns, 1):
        a: Analysed = analyse(text, speaker=speaker, occurred_at_us=DAY_US)
        rows.append((seq, KINDS.index(kind), 0, 1, 1, seq, DAY_US, 1, a.traits, names.index(speaker)))
        terms.append((seq, a.speaker, a.own, a.said))
    size = len(turns)
    near = {d: np.array([i + d if 0 <= i + d < size else -1 for i in range(size)], np.intp) for d in rank.NEAR}
    passages = Columns(*np.array(rows, np.int64).T)
    return rank.Window(passages=passages, names=names, words=words_of(terms), size=size, near=near)


def words_of(terms: list[tuple[int, str, str, str]]) -> Words:
    """(passage, speaker, own, said)"""
    known, ids = KnownWords(), np.array([t[0] for t in terms])
    known.missing(ids)
    known.add(terms)
    return known.take(ids)


def frequencies(**of_term: int) -> rank.Frequencies:
    return rank.Frequencies(passages=100, mean_length=5.0, of_term=of_term)


def features(question: str, window: rank.Window) -> dict[str, list[float]]:
    found = rank.features_of(read_question(question), window, frequencies(dog=3, rex=1))
    return {name: values.tolist() for name, values in found.items()}


def test_bm_prefers_own_words_to_a_neighbours() -> None:
    bm = features(
        "the dog", window_of(("Ann", "our dog barks"), ("Bob", "I see"), ("Ann", "yes"), ("Bob", "far away"))
    )["bm"]
    assert bm[0] > bm[1] > bm[2] > bm[3] == 0


def test_bm_is_comparable_across_questions() -> None:
    window = window_of(("Ann", "dog dog dog dog dog dog"), ("Bob", "no"))
    assert features("dog", window)["bm"][0] < rank.K1 + 1


def test_bm_rare_word_outweighs_a_common_one() -> None:
    apart = window_of(("Ann", "rex"), ("x", "a"), ("x", "b"), ("x", "c"), ("Ann", "dog"))
    bm = features("rex dog", apart)["bm"]
    assert bm[0] > bm[4]


def test_speaker_counts_for_the_one_who_is_named() -> None:
    window = window_of(("Ann", "a dog"), ("Bob", "a dog"))
    assert features("What dog does Ann have?", window)["speaker"] == [0.5, -0.5]
    assert features("What dog is it?", window)["speaker"] == [0, 0]
    both = features("Did Bob give Ann a dog?", window)
    assert both["speaker"] == [0, 0]
    assert both["first_named"] == [-0.5, 0.5]


def test_habits_of_talk_do_not_count_for_facts() -> None:
    window = window_of(("Ann", "Is it a dog in Paris?"), ("Bob", "a dog"), kind="fact")
    found = features("What dog does Ann have?", window)
    assert [found[n] for n in ("speaker", "opener", "prev_q", "ends_q", "capitals")] == [[0, 0]] * 5


def test_temporal_counts_more_where_the_question_asks_when() -> None:
    window = window_of(("Ann", "the dog came yesterday"), ("Bob", "the dog came"))
    assert features("When did the dog come?", window)["when_temporal"] == [1, 0]
    assert features("Did the dog come?", window)["when_temporal"] == [0, 0]


def test_month_fits_the_day_it_was_said() -> None:
    window = window_of(("Ann", "dog"))  # 2 January 1970
    assert features("the dog in January 1970", window)["month"] == [1]
    assert features("the dog in January 1980", window)["month"] == [0]
    assert features("the dog in 1970", window)["month"] == pytest.approx([0.3])


def test_bigram_counts_pairs_side_by_side() -> None:
    window = window_of(("Ann", "the support of a group"), ("Ann", "group support"))
    assert features("support group", window)["bigram"] == [1, 0]


def test_session_max_is_shared_by_the_sitting() -> None:
    found = features("dog", window_of(("Ann", "dog"), ("Bob", "x"), ("Bob", "y"), ("Bob", "z"), ("Bob", "far")))
    assert found["session_max"] == [max(found["bm"])] * 5


def test_weights_name_every_feature() -> None:
    weights = rank.Weights().of(static=True, neural=False)
    assert features("dog", window_of(("Ann", "dog"))).keys() <= weights.keys()
    assert weights["bm"] == 4.5
    assert rank.Weights().of(static=False, neural=False)["bm"] == 7.5
    assert rank.Weights().of(static=True, neural=True)["mini_prev"] == 4.0
