"""What all tables are made with."""

from __future__ import annotations

from typing import Any

from sqlalchemy import BigInteger, Column, ForeignKey, Integer, MetaData

metadata = MetaData(
    naming_convention={
        "ix": "ix_%(table_name)s_%(column_0_N_name)s",
        "uq": "uq_%(table_name)s_%(column_0_N_name)s",
        "ck": "ck_%(table_name)s_%(constraint_name)s",
        "fk": "fk_%(table_name)s_%(column_0_N_name)s",
        "pk": "pk_%(table_name)s",
    }
)
ID = BigInteger().with_variant(Integer, "sqlite")


def row_number() -> Column[int]:
    return Column("id", ID, primary_key=True, autoincrement=True)


def time(name: str, *, required: bool = False) -> Column[int]:
    return Column(name, BigInteger, nullable=not required)


def project() -> Column[int]:
    return Column("project_id", ID, ForeignKey("projects.id"), nullable=False)


AUTO: dict[str, Any] = {"sqlite_autoincrement": True}
