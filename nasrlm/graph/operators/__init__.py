"""The tables of operators, one file a family."""
