"""Characters of scripts that put no spaces between words, and the punctuation that goes with them.

CommonMark takes for granted that spaces or punctuation stand at the borders of words. Here they do not.
"""

from __future__ import annotations

import re

# What Unicode calls wide, fullwidth or halfwidth and no emoji, and all Hangul; by blocks, so that characters of later
# versions are in them too.
_EAST_ASIAN = (
    "\u1100-\u11ff\u20a9\u2329\u232a\u2630-\u2637\u268a-\u268f\u2e80-\u303e\u3041-\ua4cf\ua960-\ua97f\uac00-\ud7ff"
    "\uf900-\ufaff\ufe10-\ufe1f\ufe30-\ufe6f\uff01-\uffee\U00016fe0-\U00018dff\U0001aff0-\U0001b2ff"
    "\U0001d300-\U0001d37f\U0001f200\U0001f202\U0001f210-\U0001f219\U0001f21b-\U0001f22e\U0001f230\U0001f231"
    "\U0001f237\U0001f23b\U0001f240-\U0001f248\U0001f260-\U0001f265\U00020000-\U0003fffd"
)
# What UAX #14 gives the line breaking class SA (Thai, Lao, Burmese, Khmer, Tai and their neighbours), and Tibetan.
_SOUTH_EAST_ASIAN = (
    "\u0e01-\u0e3a\u0e40-\u0e4e\u0e81-\u0ecf\u0edc-\u0edf\u0f00-\u0fff\u1000-\u109f\u1780-\u17d9\u1950-\u19df"
    "\u1a20-\u1aad\ua9e0-\ua9ff\uaa60-\uaadf\U00011700-\U00011746"
)
SPACELESS_CLASS = _EAST_ASIAN + _SOUTH_EAST_ASIAN
FIRST_SPACELESS = "\u0e01"
_SPACELESS = re.compile(f"[{SPACELESS_CLASS}]")


def is_spaceless(char: str) -> bool:
    return _SPACELESS.match(char) is not None
