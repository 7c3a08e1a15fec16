"""Files, databases and queries as sources of rows: CSV, JSON lines, Parquet, Arrow, SQLite, DuckDB, workbooks, servers.

Data files are opened here and nowhere else, and memory stays bounded whatever their size. Nothing is imported with
the package, and DuckDB, psycopg and python-calamine only for what they alone can read. Begin with `file`; a format is
one record beside its reader.
"""
