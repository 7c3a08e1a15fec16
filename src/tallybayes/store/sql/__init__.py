"""A model as SQL text, so that a database scores rows where they are: `query` puts `parts` together in a `dialect`."""
