"""The answer from a message's own words is that of the model of everything; and it loads nothing heavy."""

from __future__ import annotations

import random
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from command_line import run
from letters import letter
from strategies import ALL
from test_mail_damage import as_before

import tallybayes as tb
from tallybayes.cli import one_message, running
from tallybayes.families import Bins, Gaussian, Kernel, Levels, Poisson
from tallybayes.mail.answers import Scorer, heard
from tallybayes.mail.filter import BELIEF, Filter, FilterSettings, text_weights
from tallybayes.mail.learnt import Learnt
from tallybayes.mail.message import mail_schema
from tallybayes.mail.plan import _said
from tallybayes.mail.state import LongWay, State, StateError
from tallybayes.mail.store import Store

STORES = 40 if ALL else 2
WORDS = ["prize", "lunch", "ÜBER", "naïve", "日本語", "the", "of", "x1", "wïn", "a_b", "NA", "null", "ß", "İstanbul"]


def random_letter(rng: random.Random, number: int) -> bytes:
    """A message with much that can be odd: no sender, many recipients, HTML, attachments, capitals, no text at all."""
    spam = rng.random() < 0.5
    words = [
        rng.choice(WORDS) + rng.choice(["", "s", str(rng.randrange(9))]) for _ in range(rng.choice([0, 3, 40, 900]))
    ]
    head = [f"Message-ID: <{number}@x>"] if rng.random() < 0.8 else []
    if rng.random() < 0.9:
        head.append(f"From: {rng.choice(['a', 'b', 'ü'])}@{rng.choice(['x.example', 'y.example', 'NA'])}")
    head.append("To: " + ", ".join(f"r{i}@z.example" for i in range(rng.choice([0, 1, 2, 40, 300 * spam]))))
    if rng.random() < 0.8:
        head.append(f"Subject: {rng.choice(['Hello', 'RE: ', 'WIN $5', ''])} {rng.choice(WORDS)}")
    if rng.random() < 0.7:
        head.append(f"Date: Mon, 1 Jan 2024 {rng.randrange(24):02}:00:00 +0000")
    text = " ".join(words if rng.random() < 0.7 else [w.upper() for w in words])
    if rng.random() < 0.3:
        links = "".join(
            f'<a href="http://h{rng.randrange(5)}.example/{i}">x</a>' for i in range(rng.choice([1, 3, 60]))
        )
        return "\n".join([*head, "Content-Type: text/html; charset=utf-8", "", f"<p>{text}{links}"]).encode()
    return "\n".join([*head, "Content-Type: text/plain; charset=utf-8", "", text, "$5 " * rng.randrange(3)]).encode()


@pytest.mark.parametrize("seed", range(STORES))
def test_an_answer_by_its_own_words_is_that_of_the_model(tmp_path: Path, seed: int) -> None:
    rng = random.Random(seed)
    letters = [random_letter(rng, i) for i in range(70)]
    with Filter(tmp_path / "s", FilterSettings(minimum=5)) as box:
        box.train([(rng.choice(["spam", "ham"]), raw) for raw in letters[:60]])
        for raw in letters[20:28]:
            if rng.random() < 0.5:
                box.unlearn(raw) if rng.random() < 0.5 else box.learn(raw, rng.choice(["spam", "ham"]))
            quick, whole = Scorer(box.store, box.settings).score(raw), box.score_by_model(raw)
            assert quick.probability == pytest.approx(whole.probability, abs=1e-9)
        for raw in letters:
            quick, whole = box._scorer.score(raw), box.score_by_model(raw)
            assert quick.probability == pytest.approx(whole.probability, abs=1e-9)
            assert (quick.reason, quick.notes) == (whole.reason, whole.notes)


def test_an_answer_sees_what_another_process_learnt(tmp_path: Path) -> None:
    with Filter(tmp_path / "s") as box, State(tmp_path / "s") as opened:
        scorer = Scorer(opened)
        box.train([(label, letter(i, label)) for i in range(9) for label in ("spam", "ham")])
        early = scorer.score(letter(50, "spam"))
        assert early == box.score_by_model(letter(50, "spam")) and early.reason.startswith("not enough evidence yet: 9")
        for i in range(9, 14):
            box.train([(label, letter(i, label)) for label in ("spam", "ham")])
            expected = box.score_by_model(letter(50, "spam")).probability
            assert scorer.score(letter(50, "spam")).probability == pytest.approx(expected, abs=1e-9)


def test_the_facts_about_a_message_are_those_that_the_messages_tell(tmp_path: Path) -> None:
    with Filter(tmp_path / "s") as box:
        copies = [letter(i, "ham").replace(b"number%d" % i, b"number0") for i in range(6)]
        box.train([("ham", copies[0]), ("spam", copies[1]), ("ham", copies[3])])
        for raw in (*copies, letter(7, "spam"), b"", b"Subject: no sender\n\nthe same words"):
            message = box._read(raw)
            row = box._with_facts(message)
            with box.store.reading():
                assert box.store.known(message, "ham") == (row["sender_known"], row["seen_before"])


FAMILIES = [
    Gaussian(variance="shared"), Gaussian(predictive=True), Poisson(), Bins(), Bins("frequency", 10), Levels(),
    Kernel(),
]  # fmt: skip


@pytest.mark.parametrize("family", FAMILIES, ids=str)
@pytest.mark.parametrize("name", ["recipients", "caps_share"])
def test_what_a_number_says_is_kept_for_every_family(family: Any, name: str) -> None:
    if name == "caps_share" and isinstance(family, (Poisson, Levels)):
        pytest.skip("for whole numbers")
    rng = np.random.default_rng(3)
    column = mail_schema()[name]
    values = rng.poisson(3, 200) if name == "recipients" else rng.beta(2, 9, 200)
    rows = [{name: float(x), "class": "spam" if x * (i % 3) > values.mean() else "ham"} for i, x in enumerate(values)]
    tally = tb.count(rows, tb.Schema([column], target="class"))
    belief = tally.model(tb.Settings(families={name: family})).beliefs[name]
    said = _said(belief.form(), 1, 0)
    assert said is not None
    says = heard(said)
    asked = [*range(60), 300, 70_000] if name == "recipients" else np.linspace(0, 1, 999).tolist()
    model = tally.model(tb.Settings(families={name: family}, prior="uniform"))
    log = model.predict_log_proba({name: np.array(asked, dtype=np.float64)})
    assert list(map(says, asked)) == pytest.approx((log[:, 1] - log[:, 0]).tolist(), abs=1e-9)
    assert says(None) == 0


def test_what_has_no_short_way_goes_the_long_one(tmp_path: Path) -> None:
    schema = mail_schema(text=tb.Tokeniser(hash_bits=10))
    with Store(tmp_path / "s", schema, {"minimum": 1}) as store:
        with store.change() as change:
            for label in ("ham", "spam"):
                change.learn(Learnt(label, label, {**dict.fromkeys(schema.names), "subject": label}))
        with pytest.raises(LongWay):
            Scorer(store, FilterSettings(minimum=1)).score(letter(1, "ham"))
    says = heard({"form": "cells", "points": [], "own": [], "general": [0.5], "centre": 0.0, "exponent": 0})
    for odd in (1e9, -1.0, float("nan"), float("inf"), "3"):
        with pytest.raises(LongWay):
            says(odd)


def test_smoothing_and_weights_are_those_of_the_model() -> None:
    assert tb.Settings(prior="uniform") == BELIEF
    row = {"subject": "a few words", "body": "x" * 3, "attachments": []}
    assert text_weights(mail_schema(), row) == {"subject": 1.0, "body": 1.0}


# ---- the command line


@pytest.fixture(scope="module")
def trained(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("mail") / "state"
    with Filter(path) as box:
        box.train([(label, letter(i, label)) for i in range(12) for label in ("spam", "ham")])
    path.with_name("m.eml").write_bytes(letter(50, "spam"))
    return path


PLAIN = [
    "score {state} {mail}", "score {state}", "score {state} -", "filter {state}", "score {none} {mail}",
    "score {state} {none}", "score {mail} {mail}", "filter {none}", "filter {mail}",
]  # fmt: skip
OTHERS = [
    "score {folder}", "score {state} {folder}", "filter {folder}", "score", "filter", "score {state} --explain",
    "score --nonsense", "filter {state} more", "score {state} a b", "score --help", "filter -h", "score -- {state}",
]  # fmt: skip


def arguments(call: str, state: Path) -> list[str]:
    there = {"state": state, "mail": state.with_name("m.eml"), "folder": state.parent, "none": "nowhere"}
    return ["mail", *(each.format(**there) for each in call.split())]


@pytest.mark.parametrize("call", [*PLAIN, *OTHERS])
def test_the_plain_way_says_what_click_says(trained: Path, call: str, monkeypatch: pytest.MonkeyPatch) -> None:
    quick = run(*arguments(call, trained), given=letter(51, "ham"))
    monkeypatch.setattr(running, "plain", lambda given: None)
    assert quick == run(*arguments(call, trained), given=letter(51, "ham"))


def test_only_plain_calls_do_without_click(trained: Path) -> None:
    assert all(one_message.plain(arguments(call, trained)) for call in PLAIN)
    assert not any(one_message.plain(arguments(call, trained)) for call in OTHERS)
    assert one_message.plain(["fit", str(trained)]) is None and one_message.plain([]) is None


@pytest.mark.parametrize("older", [False, True])
def test_all_messages_of_a_place_are_answered(trained: Path, tmp_path: Path, older: bool) -> None:
    state = Path(shutil.copy(trained, tmp_path / "state"))
    if older:
        as_before(state, 2)
    for i, label in enumerate(["ham", "spam", "ham"]):
        (tmp_path / "box").mkdir(exist_ok=True)
        (tmp_path / "box" / f"{i}.eml").write_bytes(letter(50 + i, label))
    single = [run("mail", "score", state, tmp_path / "box" / f"{i}.eml").out.split("  ")[0] for i in range(3)]
    done = run("mail", "score", state, "--each", tmp_path / "box")
    assert (done.returncode, done.err) == (0, "")
    assert done.out == "".join(f"{answer}  {tmp_path}/box/{i}.eml\n" for i, answer in enumerate(single))
    assert [answer.split(",")[0] for answer in single] == ["ham", "spam", "ham"]
    for wrong in (["x.eml", "--each", "box"], ["--each", "box", "--explain"], ["--each", "nowhere"]):
        assert run("mail", "score", state, *wrong).returncode == 3


HEAVY = {"numpy", "pyarrow", "scipy", "numba", "click", "rich", "pandas"}
WATCHED = """
import sys
from tallybayes.cli import main
try:
    main(["mail", "score", *sys.argv[1:]])
except SystemExit as end:
    print(end.code, *sorted({m.partition(".")[0] for m in sys.modules}))
"""


def test_an_answer_loads_nothing_heavy(trained: Path) -> None:
    code = [sys.executable, "-c", WATCHED, str(trained), str(trained.with_name("m.eml"))]
    done = subprocess.run(code, capture_output=True, text=True, check=True)
    answer, loaded = done.stdout.splitlines()
    assert answer.startswith("spam, probability=") and loaded.split()[0] == "0"
    assert not HEAVY & set(loaded.split())


def test_a_plan_of_another_release_is_refused_in_plain_words(trained: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with Filter(trained) as box:
        monkeypatch.setattr(box.store, "told", lambda key: {"columns": [{"odd": 1}]})
        with pytest.raises(StateError, match="cannot be read: "):
            box.score(letter(50, "ham"))
