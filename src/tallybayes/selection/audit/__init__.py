"""Which rows and which sources of rows the others contradict, found by taking them out of the tally.

Begin with `suspicious` (`tb.suspicious`): labels that the other rows contradict, with the terms that do, for review.
`noise` is how many labels are wrong, estimated from what held-out probabilities say of them. `sources` (`tb.sources`,
`tb.forget_source`) says the same of where rows come from: what each source gives or costs the others.
"""
