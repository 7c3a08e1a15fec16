"""One page about a model and some data, to read or to send.

Begin with `facts`, which are plain values; `page` puts them in order, and `html` draws them.
"""
