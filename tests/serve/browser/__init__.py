"""The pages in a real browser; a package, so that one browser serves all of its tests and is gone after them."""
