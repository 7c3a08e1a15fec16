"""The pages on which a person uses a model: HTML made here, one style sheet, one small script, nothing from elsewhere.

Begin with `frame`, what all pages share; `html` is how they are written. The other modules are the pages of the menu,
and what is behind them, each with a list `PAGES` of its addresses. Nothing here is for programs: they take the API.
`addresses` stands alone: it imports all pages, and they import the frame. `entering` stands alone: it is the one page
before the token. `reference` stands alone: it is a page of the menu like the others.
"""
