"""Why an answer is what it is, how sure, and what would change it.

Imports `selection`, `model` and the rooms below. Begin with `explanation`, which also says how many rows stand behind
each line. `odds` are tables of log-odds with their intervals, `what_if` finds the smallest change of a row that gives
it another answer: `changes` lists what can change, `search` finds the fewest. `plots` draws, `report` writes the page.
"""
