"""Tables: their text, and what merging may be relied upon to do."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tile_api.autotuner.options import TuneSettings
from tile_api.autotuner.store import TuneStore, read_table, write_table
from tile_api.autotuner.table import (
    Record,
    Table,
    TuningKey,
    merged,
    parse_table,
    table_of,
    text_of_table,
)
from tile_core.errors import InvalidTuningTable

PLACE = TuningKey("matmul", "0123456789abcdef", "cpu", "a machine", '{"M":64}')

places = st.builds(
    TuningKey,
    st.sampled_from(["f", "g"]),
    st.sampled_from(["k1", "k2"]),
    st.sampled_from(["cpu", "cuda:sm_80"]),
    st.just("a machine"),
    st.sampled_from(['{"M":64}', '{"M":128}']),
)
times = st.floats(1e-3, 1e3)
records = st.builds(
    Record,
    places,
    st.sampled_from(['{"b":1}', '{"b":2}', '{"b":3}']),
    st.sampled_from(["ok", "wrong", "failed"]),
    times,
    st.booleans(),
    st.none() | times,
    st.sampled_from(["", "TL5001"]),
    st.sampled_from([0.0, 1.0, 2.0]),
)
tables = st.lists(records, max_size=8).map(table_of)


@given(tables, tables)
def test_the_order_of_merging_does_not_matter(a, b):
    assert merged([a, b]) == merged([b, a])


@given(tables, tables, tables)
def test_nor_does_its_grouping(a, b, c):
    assert merged([merged([a, b]), c]) == merged([a, merged([b, c])])


@given(tables)
def test_merging_a_table_with_itself_changes_nothing(a):
    assert merged([a, a]) == merged([a]) == a


@given(tables, tables)
def test_nothing_gets_lost(a, b):
    keys = {(r.place.key, r.config) for t in (a, b) for r in t.records}
    assert {(r.place.key, r.config) for r in merged([a, b]).records} == keys


@given(tables)
def test_text_and_back(table):
    text = text_of_table(table)
    assert parse_table(text, "it") == table
    assert text_of_table(parse_table(text, "it")) == text


def record(config, ms=None, **facts):
    return Record(PLACE, config, "ok" if ms is not None else "failed", ms, **facts)


def test_the_best_is_of_the_last_rounds():
    table = table_of(
        [
            record('{"b":1}', 3.0, is_final=True),
            record('{"b":2}', 2.0, is_final=True),
            record('{"b":3}', 1.0),  # one look at it is not enough
            record('{"b":4}'),
        ]
    )
    assert [r.config for r in table.at(PLACE)] == ['{"b":2}', '{"b":1}', '{"b":3}', '{"b":4}']
    assert table.best(PLACE).config == '{"b":2}'
    assert table.best(PLACE, ['{"b":1}', '{"b":3}']).config == '{"b":1}'
    assert table.best(PLACE, ['{"b":4}', '{"b":9}']) is None
    assert table.places() == (PLACE,)


def test_the_latest_stays():
    old, new = record('{"b":1}', 1.0, time=1.0), record('{"b":1}', 2.0, time=2.0)
    assert table_of([new, old]).records == table_of([old, new]).records == (new,)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("{", "is not JSON"),
        ("[]", "it does not tell its form"),
        ('{"form": "tile tuning table 9"}', "its form is 'tile tuning table 9', not"),
        ('{"form": "tile tuning table 1"}', "has a record that is none: KeyError: 'records'"),
        ('{"form": "tile tuning table 1", "records": [3]}', "has a record that is none"),
        (
            '{"form": "tile tuning table 1", "records": [{"name": "f", "kernel": "k", '
            '"target": "cpu", "machine": "m", "bucket": {}, "config": {}, "status": "ok", '
            '"milliseconds": NaN}]}',
            "has a record that is none: ValueError: nan milliseconds",
        ),
    ],
)
def test_files_that_are_no_tables(text, message, tmp_path):
    path = tmp_path / "table.json"
    path.write_text(text)
    with pytest.raises(InvalidTuningTable, match=message):
        read_table(path)


def settings(folder, **facts):
    return TuneSettings(folder, **facts)


def test_a_store_keeps_results(tmp_path):
    store = TuneStore(settings(tmp_path / "new"))
    assert store.read(PLACE) == Table()
    store.add([record('{"b":1}', 1.0)], PLACE)
    store.add([record('{"b":2}', 2.0)], PLACE)
    assert [r.config for r in store.read(PLACE).at(PLACE)] == ['{"b":1}', '{"b":2}']
    ((path, table),) = store.tables()
    assert path.name.startswith("matmul-")
    assert table == store.read(PLACE)
    assert [p.name for p in path.parent.iterdir()] == [path.name]  # nothing is left aside


def test_a_damaged_table_of_our_own_is_as_good_as_none(tmp_path):
    store = TuneStore(settings(tmp_path))
    store.add([record('{"b":1}', 1.0)], PLACE)
    ((path, _),) = store.tables()
    path.write_text(path.read_text()[:40])
    assert store.read(PLACE) == Table()
    store.add([record('{"b":2}', 2.0)], PLACE)
    assert len(store.read(PLACE).records) == 1


def test_further_tables_are_looked_into_and_must_be_tables(tmp_path):
    shipped = tmp_path / "shipped.json"
    write_table(shipped, table_of([record('{"b":1}', 1.0)]))
    store = TuneStore(settings(tmp_path / "own", tables=(shipped,)))
    assert store.read(PLACE).best(PLACE).config == '{"b":1}'
    assert TuneStore(settings(tmp_path / "own"), [shipped]).read(PLACE).records
    missing = TuneStore(settings(tmp_path, tables=(Path("/nowhere.json"),)))
    with pytest.raises(InvalidTuningTable, match=r"/nowhere\.json cannot be read"):
        missing.read(PLACE)


def test_nothing_is_kept_where_that_is_asked_for(tmp_path):
    store = TuneStore(settings(tmp_path, keeps=False))
    store.add([record('{"b":1}', 1.0)], PLACE)
    assert not [*tmp_path.iterdir()]
    assert store.read(PLACE) == Table()
    assert store.log(PLACE).path is None


def test_a_folder_that_cannot_be_written_is_a_warning(tmp_path):
    (tmp_path / "file").write_text("")
    store = TuneStore(settings(tmp_path / "file"))
    with pytest.warns(UserWarning, match=r"results of tuning cannot be kept .*TILE_TUNE_DIR"):
        store.add([record('{"b":1}', 1.0)], PLACE)
