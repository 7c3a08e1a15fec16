"""Which rows to label next, and how many of a class are likely left.

Begin with `lookahead` (`tb.next_to_label`): what a label is expected to tell, by brute force and by its fast twin.
`pool` holds the rows without a label, their scores, and what the counts would say with one row more; `words` is its
column of words. `session` is `tb.Labelling`, which keeps all of that between labels; `left` is `tb.relevant_left`, from
a random audit.
"""
