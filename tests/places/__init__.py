"""
Fresh clones started in odd places: `python -m tests.places`.

Each place is a folder's name, a umask, a user, an environment or a neighbour that once broke a first start. A clone of
this repository's last commit is started there, asked a prompt over HTTP, looked at from outside, and stopped.
"""
