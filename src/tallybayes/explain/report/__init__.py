"""One page about a model and some data: `facts` first, as plain values, then `page`, then `html` that draws it."""
