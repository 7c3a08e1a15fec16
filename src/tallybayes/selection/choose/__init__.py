"""Choosing settings on held-out rows. Begin with `fit`, which is `tb.fit`, then `ladder`, the steps of the default.

`terms` are the held-out parts of every summand, `weights` fits weights to them, `pairs` proposes pairs of columns,
`words` ways of reading texts; `tune` tries settings that a person names.
"""
