"""Files and queries as sources of rows: CSV, TSV, JSON lines, Parquet and Arrow files, patterns of them, and SQL.

Data files are opened here and nowhere else, and memory stays bounded whatever their size. Nothing is imported with
the package: DuckDB is loaded when a file is read. Begin with `file`; a format is one record beside its reader.
"""
