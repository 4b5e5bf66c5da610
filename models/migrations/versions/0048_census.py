"""Counts of who holds a collection's tokens on chain, and what they say about rules, day by day"""

import sqlalchemy as sa
from alembic import op
from sqlalchemy.dialects import postgresql

revision = "0048"
down_revision = "0047"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.create_table(
        "census",
        sa.Column("id", sa.Integer(), nullable=False),
        sa.Column("chain", sa.String(), nullable=False),
        sa.Column("contract", sa.String(), nullable=False),
        sa.Column("state", sa.String(), nullable=False),
        sa.Column("block", sa.BigInteger(), nullable=False),
        sa.Column("block_hash", sa.String(), nullable=False),
        sa.Column("known", sa.BigInteger(), nullable=True),
        sa.Column("target", sa.BigInteger(), nullable=True),
        sa.Column("head", sa.BigInteger(), nullable=True),
        sa.Column("after", sa.String(), nullable=True),
        sa.Column("again", sa.Boolean(), nullable=False),
        sa.Column("moves", sa.BigInteger(), nullable=False),
        sa.Column("tokens", sa.BigInteger(), nullable=False),
        sa.Column("faults", sa.Integer(), nullable=False),
        sa.Column("reason", sa.String(), nullable=False),
        sa.Column("holder", sa.String(), nullable=True),
        sa.Column("held_until", sa.DateTime(timezone=True), nullable=True),
        sa.Column("next_at", sa.DateTime(timezone=True), nullable=False),
        sa.Column("wanted_at", sa.DateTime(timezone=True), nullable=False),
        sa.Column("counted_at", sa.DateTime(timezone=True), nullable=True),
        sa.PrimaryKeyConstraint("id"),
        sa.UniqueConstraint("chain", "contract"),
    )
    op.create_index("ix_census_open", "census", ["next_at"], postgresql_where=sa.text("state = 'counting'"))
    op.create_table(
        "census_token",
        sa.Column("census_id", sa.Integer(), nullable=False),
        sa.Column("part", sa.SmallInteger(), nullable=False),
        sa.Column("owner", sa.String(), nullable=False),
        sa.Column("token", sa.Numeric(78, 0), nullable=False),
        sa.Column("amount", sa.Numeric(), nullable=False),
        sa.ForeignKeyConstraint(["census_id"], ["census.id"], ondelete="CASCADE"),
        sa.PrimaryKeyConstraint("census_id", "part", "owner", "token"),
    )
    op.create_table(
        "census_turn",
        sa.Column("server_id", sa.Integer(), nullable=False),
        sa.Column("at", sa.DateTime(timezone=True), nullable=False),
        sa.ForeignKeyConstraint(["server_id"], ["server.id"], ondelete="CASCADE"),
        sa.PrimaryKeyConstraint("server_id"),
    )
    op.create_table(
        "reach",
        sa.Column("id", sa.Integer(), nullable=False),
        sa.Column("server_id", sa.Integer(), nullable=False),
        sa.Column("digest", sa.String(), nullable=False),
        sa.Column("expression", postgresql.JSONB(), nullable=False),
        sa.Column("state", sa.String(), nullable=False),
        sa.Column("reason", sa.String(), nullable=False),
        sa.Column("holders", sa.BigInteger(), nullable=True),
        sa.Column("verified", sa.BigInteger(), nullable=True),
        sa.Column("chains", postgresql.JSONB(), nullable=False),
        sa.Column("daily", sa.Boolean(), nullable=False),
        sa.Column("created_at", sa.DateTime(timezone=True), nullable=False),
        sa.Column("ended_at", sa.DateTime(timezone=True), nullable=True),
        sa.ForeignKeyConstraint(["server_id"], ["server.id"], ondelete="CASCADE"),
        sa.PrimaryKeyConstraint("id"),
    )
    op.create_index("ix_reach_server", "reach", ["server_id", "digest", "created_at"])
    op.create_index("ix_reach_open", "reach", ["id"], postgresql_where=sa.text("state = 'counting'"))
    op.create_table(
        "reach_census",
        sa.Column("reach_id", sa.Integer(), nullable=False),
        sa.Column("census_id", sa.Integer(), nullable=False),
        sa.ForeignKeyConstraint(["reach_id"], ["reach.id"], ondelete="CASCADE"),
        sa.ForeignKeyConstraint(["census_id"], ["census.id"], ondelete="CASCADE"),
        sa.PrimaryKeyConstraint("reach_id", "census_id"),
    )
    op.create_index("ix_reach_census_census_id", "reach_census", ["census_id"])
    op.create_table(
        "reach_day",
        sa.Column("rule_id", sa.Integer(), nullable=False),
        sa.Column("day", sa.Date(), nullable=False),
        sa.Column("holders", sa.BigInteger(), nullable=True),
        sa.Column("verified", sa.BigInteger(), nullable=True),
        sa.Column("chains", postgresql.JSONB(), nullable=False),
        sa.Column("reason", sa.String(), nullable=False),
        sa.Column("at", sa.DateTime(timezone=True), nullable=False),
        sa.ForeignKeyConstraint(["rule_id"], ["rule.id"], ondelete="CASCADE"),
        sa.PrimaryKeyConstraint("rule_id", "day"),
    )


def downgrade() -> None:
    for table in ("reach_day", "reach_census", "reach", "census_turn", "census_token", "census"):
        op.drop_table(table)
