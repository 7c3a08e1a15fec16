"""Spark as an engine: rows that live on a cluster are counted and scored where they are, with the same kernels.

`frames` has `opened(data)`, which gives a Source for Spark's frames and None for anything else; `data.sources` loads
it when it meets a type of Spark's package. The source's `engine` answers three questions:

    look(most)              a batch of about so many rows, and how many there are (`Batch.of`)
    count(schema)           the tally of all rows
    predict(model, prior)   the rows with `prediction` and `P(class)` added, where they live
"""
