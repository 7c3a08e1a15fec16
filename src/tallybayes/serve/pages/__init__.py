"""The pages on which a person uses a model: HTML made here, one style sheet, one small script, nothing from elsewhere.

Begin with `frame`, which all pages share, and `html`, by which they are written. Each other module is one page of the
menu or a part of one, with a list `PAGES` of its addresses. Nothing here is asked by programs: they take the API. A
*view* is a whole page, a *fragment* a piece that the script puts in its place. `routes` stands alone: it is the one
that knows all pages. `entering` stands alone: it is the only page for those who are not let in yet. `reference` stands
alone: it is a page of the menu, if a short one.
"""
