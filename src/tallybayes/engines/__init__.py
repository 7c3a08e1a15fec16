"""Engines: rows that live elsewhere are counted and scored where they are, with the same kernels.

An engine's module has `opened(data)`, which gives a Source for its frames and None for anything else; `sources` loads
it when it meets a type of the engine's package. The source's `engine` answers three questions:

    look(most)              a batch of about so many rows, and how many there are (`Batch.of`)
    count(schema)           the tally of all rows
    predict(model, prior)   the rows with `prediction` and `P(class)` added, where they live
"""
