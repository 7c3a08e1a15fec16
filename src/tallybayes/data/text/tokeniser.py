"""From a text to its tokens, in plain Python: the reference that the fast way must equal.

    text → lower case → accents → words (or character n-grams) → stop words → stems → word n-grams

Lower case, accents and the splitting look at every character; stop words and stems look at each distinct word once.
"""

from __future__ import annotations

import hashlib
import re
import sys
import unicodedata
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from functools import cache, cached_property
from typing import Any

from ...base.errors import MissingExtra, SchemaError, unknown
from ...base.records import Record
from ...base.wording import printable
from .patterns import Unbounded, check_pattern

WORDS = "words"  # Unicode words of two or more characters
AUTO = "auto"  # the same, but scripts written without spaces are cut into pairs of characters
_WORD = re.compile(r"(?u)\b\w\w+\b")
_SPACES = re.compile(r"\s+")
# Han, kana, Hangul is spaced; Thai, Lao, Tibetan, Myanmar, Khmer: written without spaces between words
_UNSPACED = re.compile(
    "[\u0e00-\u0eff\u0f00-\u0fff\u1000-\u109f\u1780-\u17ff\u3005-\u3007\u3040-\u30ff\u31f0-\u31ff\u3400-\u4dbf"
    "\u4e00-\u9fff\uf900-\ufaff\uff66-\uff9f\U00020000-\U0003ffff]+"
)


@dataclass(frozen=True)
class Tokeniser(Record):
    """How a text column is cut into tokens.

    pattern   "words", "auto" (pairs of characters for scripts without spaces), or a regular expression of your own
    lower     fold to lower case first
    accents   keep them (True) or strip them
    ngrams    word n-grams from … to …; (1, 2) is words and pairs of words
    chars     character n-grams from … to … instead of words: inside words (padded by spaces), or `across` the text
    stop      words to leave out: a language ("english") or a list
    stem      a language of PyStemmer ("english"), or None
    hash_bits bound the vocabulary to 2^hash_bits slots by hashing

    >>> tb.Tokeniser().tokens("I am spam. Spam I am!")
    ['am', 'spam', 'spam', 'am']
    >>> tb.Tokeniser(pattern="[a-z]+", ngrams=(2, 2)).tokens("I am spam")
    ['i am', 'am spam']
    """

    pattern: str = WORDS
    lower: bool = True
    accents: bool = True
    ngrams: tuple[int, int] = (1, 1)
    chars: tuple[int, int] | None = None
    across: bool = False
    stop: str | tuple[str, ...] = ()
    stem: str | None = None
    hash_bits: int | None = None

    def __post_init__(self) -> None:
        for name in ("ngrams", "chars"):
            given = getattr(self, name)
            if given is None and name == "chars":
                continue
            pair = isinstance(given, (list, tuple)) and len(given) == 2 and all(isinstance(n, int) for n in given)
            if not pair or not 1 <= given[0] <= given[1] <= 20:
                raise SchemaError(
                    f"{name}={given!r}", hint=f"take two whole numbers from … to …, at most 20: {name}=(1, 2)."
                )
            object.__setattr__(self, name, (int(given[0]), int(given[1])))
        for name in ("lower", "accents", "across"):
            if not isinstance(getattr(self, name), bool):
                raise SchemaError(f"{name}={getattr(self, name)!r}", hint="take True or False.")
        if not isinstance(self.pattern, str):
            raise SchemaError(f"the pattern {self.pattern!r}", hint=r"take 'words', 'auto' or a text such as r'\w+'.")
        if self.pattern not in (WORDS, AUTO):
            try:
                check_pattern(self.pattern)
                re.compile(self.pattern)
            except re.error as error:
                raise SchemaError(
                    f"the pattern {self.pattern!r} is no regular expression: {error}", hint=r"take e.g. r'\w+'."
                ) from None
            except Unbounded as error:
                raise SchemaError(
                    f"the pattern {printable(self.pattern, 80)!r} may take very long on some texts: {error}",
                    hint=r"let what is repeated end with a character that cannot begin it again: r'\w+(?:-\w+)*', not "
                    r"r'(?:\w+-?)+'.",
                ) from None
        if isinstance(self.stop, str):
            if self.stop not in STOP_WORDS:
                hint = f"there are lists for {', '.join(sorted(STOP_WORDS))}; or give your own list of words."
                found = f"there is no list of stop words for {self.stop!r}"
                raise unknown(SchemaError, found, self.stop, STOP_WORDS, hint)
        else:
            wrong = [w for w in self.stop if not isinstance(w, str)] if isinstance(self.stop, Iterable) else [self.stop]
            if wrong:
                raise SchemaError(
                    f"the stop word {wrong[0]!r}", hint="give a list of texts, or the name of a language."
                )
            object.__setattr__(self, "stop", tuple(sorted(set(self.stop))))
        if self.stem is not None:
            stemmer(self.stem)
        if self.hash_bits is not None and not (isinstance(self.hash_bits, int) and 8 <= self.hash_bits <= 30):
            raise SchemaError(f"hash_bits={self.hash_bits!r}", hint="take 8 to 30; 22 holds four million slots.")

    # ---- the reference

    def tokens(self, text: str) -> list[str]:
        """The tokens of one text, in order."""
        pieces = self.pieces(self.prepared(text))
        if self.stop or self.stem is not None:
            pieces = [word for word in map(self.word, pieces) if word is not None]
        return self.grams(pieces)

    def placed(self, text: str) -> list[tuple[str, int, int]]:
        """The tokens of one text as `tokens` has them, each with where it begins and ends in the text as it is given.

        >>> tb.Tokeniser(stem="english").placed("Two cats.")
        [('two', 0, 3), ('cat', 4, 8)]
        """
        text = clean(text)
        prepared, ascii_only = self.prepared(text), text.isascii()
        at = list(range(len(text))) if ascii_only else [i for i, ch in enumerate(text) for _ in self.prepared(ch)]
        pieces = self._placed_chars(prepared, at) if self.chars is not None else _moved(self._places(prepared), at)
        if self.stop or self.stem is not None:
            pieces = [(w, start, end) for piece, start, end in pieces if (w := self.word(piece)) is not None]
        low, high = (1, 1) if self.chars is not None else self.ngrams
        if (low, high) == (1, 1):
            return pieces
        runs = (pieces[i : i + n] for n in range(low, high + 1) for i in range(len(pieces) - n + 1))
        return [(" ".join(piece for piece, *_ in run), run[0][1], run[-1][2]) for run in runs]

    def prepared(self, text: str) -> str:
        """The text in lower case, without accents if they are not wanted, lone surrogates replaced."""
        text = text if text.isascii() else clean(text)
        text = text.lower() if self.lower else text
        return text if self.accents or text.isascii() else text.translate(_plain_letters())

    def flattened(self, text: str) -> str:
        """A prepared text as the fast way reads it: with every white space a single blank, where n-grams cross it."""
        text = self.prepared(text)
        return _SPACES.sub(" ", text) if self.chars is not None and self.across else text

    def pieces(self, text: str) -> list[str]:
        """A prepared text cut by the pattern, or into character n-grams."""
        if self.chars is not None:
            low, high = self.chars
            parts = [_SPACES.sub(" ", text)] if self.across else [f" {w} " for w in self._words(text)]
            return [p[i : i + n] for p in parts for n in range(low, high + 1) for i in range(len(p) - n + 1)]
        return self._words(text)

    def _words(self, text: str) -> list[str]:
        if self.pattern == WORDS:
            return _WORD.findall(text)
        if self.pattern == AUTO:
            return [text[start:end] for start, end in _words_or_pairs(text)]
        found = (m if isinstance(m, str) else "".join(m) for m in re.findall(self.pattern, text))
        return [m for m in found if m]  # a pattern such as x* also matches between any two characters

    def _places(self, text: str) -> list[tuple[str, int, int]]:
        """The words of a prepared text, each with where it stands there."""
        if self.pattern == AUTO:
            return [(text[start:end], start, end) for start, end in _words_or_pairs(text)]
        found = _WORD.finditer(text) if self.pattern == WORDS else re.finditer(self.pattern, text)
        pieces = (("".join(m.groups("")) if m.re.groups else m[0], *m.span()) for m in found)
        return [piece for piece in pieces if piece[0]]

    def _placed_chars(self, text: str, at: list[int]) -> list[tuple[str, int, int]]:
        """The character n-grams of a prepared text, each with where it stands; `at` says where its characters do."""
        assert self.chars is not None
        parts: list[tuple[str, list[int]]] = []  # each with the places of its characters
        if self.across:
            kept = [i for i, ch in enumerate(text) if not (ch.isspace() and i and text[i - 1].isspace())]
            parts.append((_SPACES.sub(" ", text), [at[i] for i in kept]))
        else:
            for word, start, end in self._places(text):
                own = _standing(at, start, end)[: len(word)]
                own += own[-1:] * (len(word) - len(own))  # groups of a pattern may say more than they stand on
                parts.append((f" {word} ", [own[0], *own, own[-1]]))
        low, high = self.chars
        return [
            (part[i : i + n], where[i], where[i + n - 1] + 1)
            for part, where in parts
            for n in range(low, high + 1)
            for i in range(len(part) - n + 1)
        ]

    def slot(self, token: str) -> str:
        """What a token is counted as: itself, or one of 2^hash_bits slots by the first bytes of a BLAKE2 hash."""
        if self.hash_bits is None:
            return token
        digest = hashlib.blake2b(token.encode(), digest_size=8).digest()
        return f"#{int.from_bytes(digest, 'little') % (1 << self.hash_bits)}"

    def word(self, piece: str) -> str | None:
        """What a distinct piece counts as: its stem, or None for a stop word."""
        if piece in self.stop_words:
            return None
        return piece if self.stem is None else stemmer(self.stem)(piece)

    @cached_property
    def stop_words(self) -> frozenset[str]:
        """The stop words, prepared as the text is."""
        words = STOP_WORDS[self.stop] if isinstance(self.stop, str) else self.stop
        return frozenset(self.prepared(w) for w in words)

    def grams(self, words: list[str]) -> list[str]:
        """Word n-grams of all sizes asked for, shortest first at each place."""
        low, high = (1, 1) if self.chars is not None else self.ngrams
        if (low, high) == (1, 1):
            return words
        return [" ".join(words[i : i + n]) for n in range(low, high + 1) for i in range(len(words) - n + 1)]

    @property
    def plain(self) -> bool:
        """Whether the splitting is one that the fast way knows."""
        return self.pattern == WORDS

    @property
    def simple(self) -> bool:
        """Whether tokens are the words themselves, so that they can be counted and scored while a text is cut."""
        further = self.stop or self.stem or self.chars or self.hash_bits is not None
        return self.plain and not further and self.ngrams == (1, 1)


def _words_or_pairs(text: str) -> Iterator[tuple[int, int]]:
    """Where words stand, or pairs of characters where a script has no spaces."""
    for match in re.finditer(r"\w+", text):
        word, start, end = match[0], match.start(), 0
        for run in _UNSPACED.finditer(word):
            if run.start() - end > 1:
                yield start + end, start + run.start()
            size = len(run[0])
            for i in range(max(size - 1, 1)):
                yield start + run.start() + i, start + run.start() + min(i + 2, size)
            end = run.end()
        if len(word) - end > 1:
            yield start + end, start + len(word)


def _moved(pieces: list[tuple[str, int, int]], at: list[int]) -> list[tuple[str, int, int]]:
    """Pieces of a prepared text, placed where they stand in the text that it was made of."""
    places = ((piece, _standing(at, start, end)) for piece, start, end in pieces)
    return [(piece, where[0], where[-1] + 1) for piece, where in places]


def _standing(at: list[int], start: int, end: int) -> list[int]:
    """Where characters stand; what a pattern has looked ahead or back for stands on the character beside it."""
    return at[start:end] or at[start : start + 1] or at[-1:]


def without_spaces(text: str) -> int:
    """How many characters of a text belong to a script that is written without spaces between words.

    >>> without_spaces("abc 日本")
    2
    """
    return sum(len(run) for run in _UNSPACED.findall(text))


def clean(text: str) -> str:
    """The text with lone surrogates, which no file can hold, replaced by U+FFFD.

    >>> clean("a\\ud800b")
    'a\\ufffdb'
    """
    try:
        text.encode("utf-8")
    except UnicodeEncodeError:
        return text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
    return text


@cache
def _plain_letters() -> dict[int, str | None]:
    """Letters to what is left of them without their marks. A table, since `unicodedata.normalize` is quadratic."""
    out: dict[int, str | None] = {}
    for code in range(0x80, sys.maxunicode + 1):
        char = chr(code)
        if unicodedata.combining(char):
            out[code] = None
        elif unicodedata.decomposition(char) and not unicodedata.decomposition(char).startswith("<"):
            out[code] = "".join(c for c in unicodedata.normalize("NFD", char) if not unicodedata.combining(c))
    return out


@cache
def stemmer(language: str) -> Callable[[str], str]:
    """PyStemmer's function for a language."""
    try:
        import Stemmer
    except ImportError:
        raise MissingExtra("stemming needs PyStemmer", hint="pip install 'tallybayes[stem]'") from None
    known: list[str] = Stemmer.algorithms()
    if language not in known:
        hint = f"there are stemmers for {', '.join(known)}."
        raise unknown(SchemaError, f"there is no stemmer for {language!r}", language, known, hint)
    stem: Any = Stemmer.Stemmer(language).stemWord
    return stem  # type: ignore[no-any-return]


# Function words, which say nothing about a topic: a few dozen per language, and short on purpose. A long list throws
# away words that mean something to somebody ("computer" stands in one).
_LISTS = {
    "danish": "af at da de den der deres det du eller en end er et for fra han har hun i ikke jeg kan med men mig "
    "nu og om op på sig skal som så til var vi vil være",
    "dutch": "aan al als bij dan dat de der deze die dit door een en er het hij hoe ik in is je kan maar me met "
    "mijn naar niet nog nu of om onder ons ook op over te ten tot uit van veel voor want was wat we wel "
    "wie wij zij zijn zo zou",
    "english": "a about after all also am an and any are as at be because been before being both but by can could "
    "did do does for from had has have he her here hers him his how i if in into is it its just me more "
    "most my no nor not of on once only or other our out over own same she should so some such than that "
    "the their them then there these they this those through to too under until up very was we were what "
    "when where which while who whom why will with would you your yours",
    "finnish": "ei että he hän ja jos joka jotka kanssa kuin kun me mikä minä mukaan mutta myös ne niin nämä ole oli "
    "on ovat se sekä sen siis sinä tai te tämä vaan vai voi",
    "french": "à au aux avec ce ces cette comme d dans de des du elle en est et été être eux il ils j je l la le "
    "les leur lui m ma mais me même mes moi mon n ne nos notre nous on ou où par pas pour qu que qui s sa "
    "sans se ses si son sont sur t ta te tes toi ton tu un une vos votre vous y",
    "german": "aber als am an auch auf aus bei bin bis da dann das dass dein dem den der des die dir doch du durch "
    "ein eine einem einen einer eines er es für hat hatte ich ihm ihn ihr im in ist ja kann kein mein "
    "mich mir mit nach nicht noch nun nur ob oder ohne schon sein sich sie sind so über um und uns unter "
    "vom von vor war was wenn wer wie wir wird zu zum zur",
    "italian": "a ad al alla alle anche c che chi ci come con cui d da dal dalla de del della delle dei di e è ed "
    "era essere fra gli ha hanno ho i il in io l la le lei li lo loro lui ma mi mia mio ne nei nel nella "
    "noi non nostro o per perché più quando quella quello questa questo se si sia sono su sua suo sul "
    "sulla ti tra tu un una uno vi voi",
    "norwegian": "av at da de den det du eller en er et for fra han har hun i ikke jeg kan med men meg nå og om opp på "
    "seg skal som så til var vi vil være",
    "portuguese": "a ao aos as à às com como da das de dele do dos e é ela ele em entre era essa esse esta este eu foi "
    "há isso já lhe mais mas me mesmo meu minha muito na nas não nem no nos nós o os ou para pela pelo "
    "por qual quando que quem se sem ser seu sua são só também te tem um uma você",
    "spanish": "a al algo como con cual cuando de del desde donde e el ella ellos en entre era es esa ese esta este "
    "esto ha hay la las le les lo los más me mi mis mucho muy nada ni no nos o os otra otro para pero "
    "poco por porque que quien se sea ser si sin sobre son su sus también te tiene todo tu tus un una uno "
    "y ya yo",
    "swedish": "alla att av de den denna det dig du där efter ej eller en ett från för ha han har hon i icke inte "
    "jag kan man med men mig min mot ni nu när och om oss på sedan sig sin ska som så till under upp ut "
    "var vi vid vill är även över",
}

STOP_WORDS = {language: frozenset(words.split()) for language, words in _LISTS.items()}
