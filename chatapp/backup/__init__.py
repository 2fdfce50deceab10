"""
`manage.py backup` and `restore`: the lasting state in one file, while Sidestream runs, and back.

manifest (pure) · archive (the file) · database (a copy of one moment, and what is fit to be restored) · switch
(old state out, new state in, as one step). Redis's files are no part of it: they hold only what is under way.
"""
