"""Files, databases and queries as sources of rows: CSV, JSON lines, Parquet, Arrow, SQLite, DuckDB, workbooks, servers.

Data files are opened here and nowhere else, and memory stays bounded whatever their size. Nothing is imported with
the package: DuckDB is loaded when a file is read. Begin with `file`; a format is one record beside its reader.
"""
