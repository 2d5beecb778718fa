"""The search spaces that come with nasrlm, one self-contained file each; a new space is one new file here."""

PROVIDED_BY = "nasrlm"
