"""Tables of true values that come with nasrlm, each with a data card: NAME.parquet and NAME.md.

`load_table("snas_digits", ...)` and `table: {path: snas_digits}` in a YAML file find them by name.
"""
