"""Importers of published label files, one file a format: `import_table("nasbench101", [file], "table.parquet")`.

A module that defines ``IMPORTER`` is an importer under its own name; the entry-point group ``nasrlm.importers``
finds them here and in other installed packages. Files of foreign origin are read without running anything in
them: pickles may hold numbers, texts, lists, dicts and arrays of numbers and nothing else.
"""

from __future__ import annotations

from nasrlm.datasets.importers.protocol import Importer, Published, Row, Skipped
from nasrlm.datasets.importers.write import Imported, import_table, importer

__all__ = ["Imported", "Importer", "Published", "Row", "Skipped", "import_table", "importer"]
