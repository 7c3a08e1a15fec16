"""A model in use: what it is asked, beside what it has learnt.

Begin with `watch`, which answers as the model does and counts what it is asked. *Outside* is what no counted row had:
`learnt` knows the values and the range of each column, and what of a row lies beyond. `watched` is what a watch has
counted: its counters, the report that people read, the text that Prometheus reads.
"""
