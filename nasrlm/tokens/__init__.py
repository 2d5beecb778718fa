"""From text and numbers to token ids and back.

`TextTokenizer` cuts canonical text into small pieces; `NumberTokens` writes one number as ordered tokens.
"""

from __future__ import annotations

from nasrlm.tokens.numbers import NumberTokens
from nasrlm.tokens.text import TextTokenizer

__all__ = ["NumberTokens", "TextTokenizer"]
