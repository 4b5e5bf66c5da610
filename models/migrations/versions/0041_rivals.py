"""Who else moves the roles of our rules, and the roles that we leave alone because of that"""

import sqlalchemy as sa
from alembic import op

revision = "0041"
down_revision = "0040"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.create_table(
        "rival_move",
        sa.Column("id", sa.BigInteger(), nullable=False),
        sa.Column("server_id", sa.Integer(), nullable=False),
        sa.Column("discord_id", sa.String(), nullable=False),
        sa.Column("role_id", sa.String(), nullable=False),
        sa.Column("taken", sa.Boolean(), nullable=False),
        sa.Column("at", sa.DateTime(timezone=True), nullable=False),
        sa.Column("since", sa.DateTime(timezone=True), nullable=True),
        sa.Column("against", sa.Boolean(), nullable=False),
        sa.Column("naming", sa.String(), nullable=False),
        sa.Column("reason", sa.String(), nullable=True),
        sa.Column("entry_id", sa.String(), nullable=True),
        sa.Column("actor_id", sa.String(), nullable=True),
        sa.Column("actor_name", sa.String(), nullable=True),
        sa.Column("actor_bot", sa.Boolean(), nullable=False),
        sa.Column("attempts", sa.Integer(), nullable=False),
        sa.Column("next_at", sa.DateTime(timezone=True), nullable=True),
        sa.ForeignKeyConstraint(["server_id"], ["server.id"], ondelete="CASCADE"),
        sa.PrimaryKeyConstraint("id"),
    )
    op.create_index("ix_rival_move_line", "rival_move", ["server_id", "discord_id", "role_id", "at"])
    op.create_index("ix_rival_move_server", "rival_move", ["server_id", "at"])
    op.create_index("ix_rival_move_next", "rival_move", ["next_at"], postgresql_where=sa.text("next_at IS NOT NULL"))
    op.create_index(
        "ix_rival_move_entry",
        "rival_move",
        ["server_id", "entry_id", "role_id"],
        unique=True,
        postgresql_where=sa.text("entry_id IS NOT NULL"),
    )
    op.create_table(
        "truce",
        sa.Column("server_id", sa.Integer(), nullable=False),
        sa.Column("discord_id", sa.String(), nullable=False),
        sa.Column("role_id", sa.String(), nullable=False),
        sa.Column("since", sa.DateTime(timezone=True), nullable=False),
        sa.Column("until", sa.DateTime(timezone=True), nullable=False),
        sa.ForeignKeyConstraint(["server_id"], ["server.id"], ondelete="CASCADE"),
        sa.PrimaryKeyConstraint("server_id", "discord_id", "role_id"),
    )
    op.create_index("ix_truce_until", "truce", ["until"])


def downgrade() -> None:
    op.drop_table("truce")
    op.drop_table("rival_move")
