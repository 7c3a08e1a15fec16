"""A data engineer: parts of a table in several formats, counted apart, added, taken away again, and asked in SQL."""

import sqlite3

import duckdb
import numpy as np
import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet as pq
import pytest
from command_line import run
from strategies import ALL

import tallybayes as tb

PARTS, ROWS = 3, 50_000 if ALL else 60


def part(number):
    draw = np.random.default_rng(number)
    sold = draw.random(ROWS) < 0.3 + 0.1 * number
    return pa.table(
        {
            "id": np.arange(ROWS) + number * ROWS,
            "size": np.round(draw.normal(50 + 20 * sold, 10), 1),
            "rooms": draw.integers(1, 4, ROWS) + sold,
            "district": np.where(draw.random(ROWS) < 0.5, "North, by the sea", np.where(sold, 'the "Old" Town', "Süd")),
            "sold": np.where(sold, "yes", "no"),
        }
    )


@pytest.fixture(scope="module")
def lake(tmp_path_factory):
    folder = tmp_path_factory.mktemp("lake")
    for i in range(PARTS):
        table, name = part(i), folder / f"part-{i}"
        if i % 2:
            pq.write_table(table, f"{name}.parquet")
        else:
            pa.csv.write_csv(table, f"{name}.csv")
    return folder


def test_the_walk_of_a_data_engineer(lake, tmp_path):
    schema, whole = tmp_path / "schema.json", tmp_path / "all.tb.parquet"
    plain = ["--no-calibrate", "--folds", 0]
    files = sorted(lake.iterdir())
    fitted = run("fit", *files, "--target", "sold", *plain, "--save-schema", schema, "-o", whole)
    assert fitted.returncode == 0, fitted.err
    assert f"{PARTS * ROWS:,} rows: sold" in fitted.out

    # counted apart and merged is counted together, bit for bit, whatever the format
    models = []
    for i, file in enumerate(files):
        models.append(tmp_path / f"{i}.tb.parquet")
        assert run("fit", file, "--schema", schema, *plain, "-o", models[-1]).returncode == 0
    merged = tmp_path / "merged.tb.parquet"
    assert run("merge", *models, "-o", merged).returncode == 0
    assert tb.load(merged).tally == tb.load(whole).tally

    # a part that is taken away leaves what the others give
    rest = tb.load(whole).tally - tb.load(models[1]).tally
    assert rest == tb.count([files[0], *files[2:]], schema=tb.Schema.load(schema))
    assert rest.rows == (PARTS - 1) * ROWS
    with pytest.raises(tb.CannotEstimate, match="no rows can have"):
        (tb.load(models[0]).tally - tb.load(models[1]).tally).model()

    # the answers of the database are those of the library
    model = tb.load(whole)
    table = pa.concat_tables([part(i) for i in range(PARTS)])
    scorer = model.to_sql("flat", "duckdb", keep=["id"])
    with duckdb.connect() as db:
        db.register("flat", table)
        for statement in scorer.setup:
            db.execute(statement)
        asked = db.execute(f'SELECT id, prediction, "P(yes)" FROM ({scorer.query}) ORDER BY id').fetchall()
    p = model.predict_proba(table)
    assert [row[1] for row in asked] == model.predict(table).tolist()
    assert np.abs(np.array([row[2] for row in asked]) - p[:, list(model.classes).index("yes")]).max() < 1e-9

    # two models in one database, as scripts: each has its own table of weights, under the name of its file
    small = tmp_path / "small.tb.parquet"
    options = ["--schema", schema, "--smoothing", "laplace:3", *plain]
    assert run("fit", *files, *options, "-o", small).returncode == 0
    with sqlite3.connect(tmp_path / "flats.db") as db:
        table.to_pandas().to_sql("all flats; DROP", db, index=False)
        for path in (whole, small):
            script = tmp_path / "score.sql"
            where = ["--table", "all flats; DROP", "--dialect", "sqlite", "--keep", "id"]
            assert run("export", path, *where, "--weights-table", f"w {path.stem}", "-o", script).returncode == 0
            setup, _, query = script.read_text().rpartition("COMMIT;")
            db.executescript(setup + "COMMIT;" if setup else "")
            answers = db.execute(f"SELECT * FROM ({query.strip().rstrip(';')}) ORDER BY id").fetchall()
            expected = tb.load(path).predict_proba(table)
            assert np.abs(np.array([row[2:] for row in answers]) - expected).max() < 1e-9
    db.close()

    # the same rows from the database, by its table and by a query: bit for bit what the files gave
    address = f"sqlite:///{tmp_path / 'flats.db'}#all flats; DROP"
    assert tb.count(address, schema=tb.Schema.load(schema)) == model.tally
    part_of = ["--query", f'SELECT * FROM "all flats; DROP" WHERE id < {ROWS}']
    counted = tmp_path / "first.tb.parquet"
    assert run("fit", tmp_path / "flats.db", *part_of, "--schema", schema, *plain, "-o", counted).returncode == 0
    assert tb.load(counted).tally == tb.load(models[0]).tally
    asked = run("fit", tmp_path / "flats.db", "--table", "flats", "--target", "sold")
    assert asked.returncode == 2
    assert "'all flats; DROP'" in asked.err
    dropped = run("fit", tmp_path / "flats.db", "--query", 'DROP TABLE "all flats; DROP"', "--target", "sold")
    assert dropped.returncode == 2
    assert "give one SELECT that reads this database" in dropped.err

    # which of the two is better, on the same rows?
    both = run("compare", "--model", whole, "--model", small, *files, "--disagree", tmp_path / "apart.csv")
    assert both.returncode == 0, both.err
    differ = int((tb.load(small).predict(table) != model.predict(table)).sum())
    assert f"Answers differ on {differ} of {PARTS * ROWS:,} rows" in both.out
    assert "all: these are the very rows that the model has learnt from." in both.out
    assert "exact McNemar" in both.out
    assert len((tmp_path / "apart.csv").read_text().splitlines()) == differ + 1

    # answers in the format that the name says
    out = tmp_path / "answers.parquet"
    assert run("predict", whole, *files, "--keep", "id", "--proba", "-o", out).returncode == 0
    written = pq.read_table(out)
    assert written.num_rows == PARTS * ROWS
    assert sorted(map(int, written["id"].to_pylist())) == list(range(PARTS * ROWS))


def test_a_part_with_other_columns_is_told(lake, tmp_path):
    pa.csv.write_csv(part(0).rename_columns(["id", "size", "rooms", "disrtict", "sold"]), tmp_path / "odd.csv")
    done = run("fit", lake / "part-0.csv", tmp_path / "odd.csv", "--target", "sold")
    assert done.returncode == 2
    assert "disrtict" in done.err
    assert "tallybayes merge" in done.err
    lost = run("predict", tmp_path / "al.tb.parquet", lake / "part-0.csv")
    assert lost.returncode == 2
    assert "al.tb.parquet" in lost.err
