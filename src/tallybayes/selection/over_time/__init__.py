"""What changes from period to period: when, in which columns, and what it does to the answers.

Begin with `scan` (`tb.change`): every column, parted at every time, by tests of two samples whose level holds over all
columns and times, since `deals` deals the rows out to the periods anew. `prequential` (`tb.prequential`) judges each
period by the model of the periods before it. Both ask `tally.windows`, where any stretch of periods is a sum.
"""
