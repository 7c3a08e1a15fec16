"""How a column of texts is proposed to be cut: into words, or where words tell little, into characters."""

from __future__ import annotations

import re
from collections.abc import Sequence

from .schema import Column
from .text.tokeniser import AUTO, Tokeniser, without_spaces

SOME = 1_000  # values looked at
NAME_CHARACTERS = (1, 4)
# one to three words of letters, joined as names are: Anne-Marie, O'Neill, St. John, Smith, Jo
_NAME = re.compile(r"[^\W\d_]+([ '’.,\-]{1,2}[^\W\d_]+){0,2}\.?")
_VOWEL = re.compile(r"[aeiouyàáâãäåæèéêëìíîïòóôõöøùúûüýÿœ]|[^\x00-\u024f]")


def free_text(name: str, values: Sequence[str], words: float) -> Column:
    """A column of free text, cut into words; into pairs of characters where the script has no spaces."""
    some = "".join(_some(values))
    if without_spaces(some) > 0.2 * sum(ch.isalpha() for ch in some):
        reason = "free text, much of it in a script without spaces"
        return Column(name, "text", text=Tokeniser(pattern=AUTO), reason=reason)
    return Column(name, "text", reason=f"free text, {words:.0f} words on average")


def names(name: str, different: int) -> Column:
    """A column of names, cut into short stretches of characters: a name seen once says nothing, its ending does."""
    reason = f"names or single words, {different} different: read by one to four of their characters"
    return Column(name, "text", text=Tokeniser(chars=NAME_CHARACTERS), reason=reason)


def are_names(values: Sequence[str]) -> bool:
    """Whether nearly all values look like words of a language: letters with a vowel, not codes in capitals.

    >>> are_names(["Anna", "Jean-Luc", "O'Neill", "Борис"]), are_names(["XKA", "QEV"]), are_names(["u1", "u2"])
    (True, False, False)
    """
    some = _some(values)
    like = [v for v in some if 2 <= len(v) <= 40 and _NAME.fullmatch(v) and _VOWEL.search(v.lower())]
    return len(like) >= 0.95 * len(some) and not any(v.isupper() for v in like[:20])


def _some(values: Sequence[str]) -> Sequence[str]:
    return values[:: max(1, len(values) // SOME)]
