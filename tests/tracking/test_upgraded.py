"""A server's database of the MLflow release before is upgraded as the server starts: `make stress`."""

from pathlib import Path

import pytest

from tests.tracking.services import Deployed, Postgres
from tests.tracking.test_workflow import edit
from tests.tracking.users import User, assert_once_each, results

pytestmark = pytest.mark.stress
REVISION = "b7e2c1a4d9f3"
"""The last revision of the database of MLflow 3.16.1, the release before the one that the lock pins."""


def test_a_store_of_the_release_before_is_upgraded(
    services: tuple[Postgres, str, Path], dvc_repository: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its schema is made with MLflow's own migrations, and filled with a result of today's."""
    postgres, _, secret = services
    monkeypatch.setenv("PGPASSWORD", postgres.password)
    for database in ("today", "older"):
        postgres.create(database)
    today, older = (Deployed(tmp_path, *services, database=name) for name in ("today", "older"))
    today.start()
    try:
        user = User(dvc_repository, today, secret)
        user.run("dvc", "repro")
        before = {row.info.run_id: row.data.to_dictionary() for row in results(today)}
    finally:
        today.stop()
    make_older(postgres.uri("older"), postgres.uri("today"))
    assert revision(postgres.uri("older")) == REVISION
    older.start()
    try:
        assert {row.info.run_id: row.data.to_dictionary() for row in results(older)} == before
        user.env["MLFLOW_TRACKING_URI"] = older.uri
        assert user.sync() == "rows 0\n"
        edit(user.root, "bonus: 0", "bonus: 5")
        assert "tracking: " not in user.run("dvc", "repro")
        assert_once_each(older, 3)
    finally:
        older.stop()
    assert revision(postgres.uri("older")) == revision(postgres.uri("today")) != REVISION


def revision(uri: str) -> str:
    """That of a database's schema."""
    import sqlalchemy

    engine = sqlalchemy.create_engine(uri)
    with engine.connect() as connection:
        found = str(connection.execute(sqlalchemy.text("SELECT version_num FROM alembic_version")).scalar_one())
    engine.dispose()
    return found


def make_older(uri: str, filled: str) -> None:
    """Make the schema of the release before in an empty database, and copy what another one has into it."""
    import sqlalchemy
    from alembic import command
    from mlflow.store.db.utils import _get_alembic_config
    from mlflow.store.tracking.dbmodels.initial_models import Base

    engine, source = sqlalchemy.create_engine(uri), sqlalchemy.create_engine(filled)
    Base.metadata.create_all(engine)
    config = _get_alembic_config(uri)
    with engine.begin() as connection:
        config.attributes["connection"] = connection
        command.upgrade(config, REVISION)
    tables, given = sqlalchemy.MetaData(), sqlalchemy.MetaData()
    tables.reflect(engine)
    given.reflect(source)
    with engine.begin() as connection, source.connect() as reader:
        for table in tables.sorted_tables:
            if table.name not in given.tables or table.name == "alembic_version":
                continue
            has = given.tables[table.name].c
            columns = [has[column.name] for column in table.c if column.name in has]
            rows = [dict(row) for row in reader.execute(sqlalchemy.select(*columns)).mappings()]
            connection.execute(table.delete())  # what the migrations put there
            if rows:
                connection.execute(table.insert(), rows)
    for each in (engine, source):
        each.dispose()
