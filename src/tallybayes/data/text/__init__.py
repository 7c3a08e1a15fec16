"""Texts cut into tokens: `tokeniser` is the readable reference and what a schema stores, `tokens` cuts whole columns.

Begin with `tokeniser`. A *token* is what is counted of a text: a word, a pair of words or some characters.
"""
