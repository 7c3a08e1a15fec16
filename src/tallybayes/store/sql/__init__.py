"""A model as SQL text, so that a database scores rows where they are.

Begin with `query`, which puts the parts of the columns together; `parts` writes one column, `texts` lets the database
cut texts into words, `dialects` knows how each database spells what they need.
"""
