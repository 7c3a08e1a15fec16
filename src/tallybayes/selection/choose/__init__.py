"""Choosing settings on held-out rows, because nobody should have to.

Begin with `fit`, which is `tb.fit`, then `ladder`: one form after the other, each kept where held-out rows gain.
A *summand* is a column, or one of the families that read it: `summands` has what each says of held-out rows, `weights`
fits weights to that *evidence*. `pairs` proposes pairs of columns, `words` ways of reading texts. `tune` stands apart:
it tries settings that a person names.
"""
