"""Spark as an engine: rows that live on a cluster are counted and scored where they are, with the same kernels.

Begin with `frames`: `opened(data)` gives a Source for Spark's frames and None for anything else; `data.sources` loads
it when it meets a type of Spark's package. The source's `engine` answers three questions:

    look(most)              a batch of about so many rows, and how many there are (`Batch.of`)
    count(schema)           the tally of all rows
    predict(model, prior)   the rows with `prediction` and `P(class)` added, where they live

`grouped` stands alone: it is the one way of counting that the engine itself does, where every column is a category.
"""
