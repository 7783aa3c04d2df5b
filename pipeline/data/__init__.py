"""Files to blocks: what is judged and what a model returned, read, checked and joined by id.

`files` finds and opens, `formats` parses, `readers` name the columns, `ranking` orders, `join` matches and pads, and
`dataset` does all of it for one dataset or one model's output. `overlap` says why an output matches too little.
"""
