"""Which rows to label next, and how many of a class are likely left.

Begin with `lookahead` (`tb.next_to_label`): what a label is expected to tell, by brute force and by its fast twin.
`pool` holds the rows without a label and what the counts would say with one row more; `words` is its column of words.
`scored` keeps a score of each row while labels come, and picks; `session` is `tb.Labelling`, which is that with its
labels, and `serve` has one of its own. `left` is `tb.relevant_left`, from a random audit.
"""
