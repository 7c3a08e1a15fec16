"""Hints of the library in the words of the command line: `tb.read(path, encoding='cp1252')` is `--encoding cp1252`."""

from __future__ import annotations

import re
import shlex

_WORDS = {"target='…'": "--target COLUMN", "model.save(path)": "tallybayes fit -o MODEL"}
_OPTIONS = ("delimiter", "encoding", "decimal", "bad_lines", "memory_limit")


def for_commands(text: str) -> str:
    """The text with Python calls that an option stands for replaced by that option.

    >>> for_commands("say it: tb.read(path, encoding='latin-1').")
    'say it: --encoding latin-1.'
    >>> for_commands("count it with schema.with_column('my boat', kind='category').")
    "count it with --set 'my boat=category'."
    """
    for words, ours in _WORDS.items():
        text = text.replace(words, ours)
    text = re.sub(r"tb\.read\([^()=]*?, (\w+)=(['\"])(.*?)\2\)", lambda m: _option(m[1], m[3]), text)
    text = re.sub(r"\b(" + "|".join(_OPTIONS) + r")=(['\"])(.*?)\2", lambda m: _option(m[1], m[3]), text)
    return re.sub(
        r"schema\.with_column\((['\"])(.*?)\1, kind=(['\"])(\w+)\3\)",
        lambda m: f"--set {shlex.quote(f'{m[2]}={m[4]}')}",
        text,
    )


def _option(name: str, value: str) -> str:
    name = "read-as" if name == "format" else name.replace("_", "-")
    return f"--{name} {shlex.quote(value)}"
