"""What is kept and what is given away: the model file, sealed files, JSON, ONNX and SQL.

Imports `model` and the rooms below. Begin with `model_file`; `parquet` has the checks that come before a byte is
believed, `windows` keeps a folder of tallies. A *sealed* model answers and holds no counts; `json`, `onnx` and `sql`
write what it says in other languages, `mlflow` keeps and loads it there.
Nothing here loads code from a file.
"""
