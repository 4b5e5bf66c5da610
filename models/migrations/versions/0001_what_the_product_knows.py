"""What the product knows"""

import sqlalchemy as sa
from alembic import op
from sqlalchemy.dialects import postgresql

revision = "0001"
down_revision = None
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.create_table(
        "collection",
        sa.Column("id", sa.Integer(), nullable=False),
        sa.Column("chain", sa.String(), nullable=False),
        sa.Column("contract", sa.String(), nullable=False),
        sa.Column("name", sa.String(), nullable=False),
        sa.Column("slug", sa.String(), nullable=True),
        sa.Column("standard", sa.String(), nullable=True),
        sa.Column("source", sa.String(), nullable=False),
        sa.Column("updated_at", sa.DateTime(timezone=True), nullable=False),
        sa.PrimaryKeyConstraint("id"),
        sa.UniqueConstraint("chain", "contract"),
    )
    op.create_table(
        "cursor",
        sa.Column("chain", sa.String(), nullable=False),
        sa.Column("block", sa.BigInteger(), nullable=False),
        sa.Column("block_hash", sa.String(), nullable=False),
        sa.Column("owner", sa.String(), nullable=True),
        sa.Column("owned_until", sa.DateTime(timezone=True), nullable=True),
        sa.Column("updated_at", sa.DateTime(timezone=True), nullable=False),
        sa.PrimaryKeyConstraint("chain"),
    )
    op.create_table(
        "due",
        sa.Column("kind", sa.String(), nullable=False),
        sa.Column("key", sa.String(), nullable=False),
        sa.Column("priority", sa.Integer(), nullable=False),
        sa.Column("due_at", sa.DateTime(timezone=True), nullable=False),
        sa.Column("version", sa.BigInteger(), nullable=False),
        sa.Column("attempts", sa.Integer(), nullable=False),
        sa.Column("claimed_until", sa.DateTime(timezone=True), nullable=True),
        sa.Column("claimed_by", sa.String(), nullable=True),
        sa.PrimaryKeyConstraint("kind", "key"),
    )
    op.create_index("ix_due_next", "due", ["priority", "due_at"], unique=False)
    op.create_table(
        "observation",
        sa.Column("chain", sa.String(), nullable=False),
        sa.Column("contract", sa.String(), nullable=False),
        sa.Column("address", sa.String(), nullable=False),
        sa.Column("amount", sa.Numeric(precision=78, scale=0), nullable=False),
        sa.Column("block", sa.BigInteger(), nullable=False),
        sa.Column("source", sa.String(), nullable=False),
        sa.Column("observed_at", sa.DateTime(timezone=True), nullable=False),
        sa.PrimaryKeyConstraint("chain", "contract", "address"),
    )
    op.create_table(
        "schedule",
        sa.Column("name", sa.String(), nullable=False),
        sa.Column("next_at", sa.DateTime(timezone=True), nullable=False),
        sa.Column("started_at", sa.DateTime(timezone=True), nullable=True),
        sa.Column("finished_at", sa.DateTime(timezone=True), nullable=True),
        sa.Column("done", sa.Integer(), nullable=False),
        sa.Column("total", sa.Integer(), nullable=False),
        sa.PrimaryKeyConstraint("name"),
    )
    op.create_table(
        "server",
        sa.Column("id", sa.Integer(), nullable=False),
        sa.Column("discord_id", sa.String(), nullable=False),
        sa.Column("name", sa.String(), nullable=False),
        sa.Column("icon", sa.String(), nullable=True),
        sa.Column("description", sa.String(), nullable=False),
        sa.Column("owner_id", sa.String(), nullable=True),
        sa.Column("bot_invited", sa.Boolean(), nullable=False),
        sa.Column("bot_joined_at", sa.DateTime(timezone=True), nullable=True),
        sa.Column("bot_left_at", sa.DateTime(timezone=True), nullable=True),
        sa.Column("created_at", sa.DateTime(timezone=True), nullable=False),
        sa.PrimaryKeyConstraint("id"),
        sa.UniqueConstraint("discord_id"),
    )
    op.create_table(
        "user",
        sa.Column("id", sa.Integer(), nullable=False),
        sa.Column("discord_id", sa.String(), nullable=False),
        sa.Column("username", sa.String(), nullable=False),
        sa.Column("global_name", sa.String(), nullable=True),
        sa.Column("avatar", sa.String(), nullable=True),
        sa.Column("email", sa.String(), nullable=True),
        sa.Column("access_token", sa.LargeBinary(), nullable=True),
        sa.Column("refresh_token", sa.LargeBinary(), nullable=True),
        sa.Column("token_expires_at", sa.DateTime(timezone=True), nullable=True),
        sa.Column("connected", sa.Boolean(), nullable=False),
        sa.Column("created_at", sa.DateTime(timezone=True), nullable=False),
        sa.Column("updated_at", sa.DateTime(timezone=True), nullable=False),
        sa.PrimaryKeyConstraint("id"),
        sa.UniqueConstraint("discord_id"),
    )
    op.create_table(
        "access",
        sa.Column("server_id", sa.Integer(), nullable=False),
        sa.Column("discord_id", sa.String(), nullable=False),
        sa.Column("owner", sa.Boolean(), nullable=False),
        sa.Column("checked_at", sa.DateTime(timezone=True), nullable=False),
        sa.ForeignKeyConstraint(["server_id"], ["server.id"], ondelete="CASCADE"),
        sa.PrimaryKeyConstraint("server_id", "discord_id"),
    )
    op.create_index(op.f("ix_access_discord_id"), "access", ["discord_id"], unique=False)
    op.create_table(
        "breaker",
        sa.Column("server_id", sa.Integer(), nullable=False),
        sa.Column("role_id", sa.String(), nullable=False),
        sa.Column("tripped_at", sa.DateTime(timezone=True), nullable=False),
        sa.Column("would_lose", sa.Integer(), nullable=False),
        sa.Column("holders", sa.Integer(), nullable=False),
        sa.Column("approved_at", sa.DateTime(timezone=True), nullable=True),
        sa.Column("approved_by", sa.String(), nullable=True),
        sa.ForeignKeyConstraint(["server_id"], ["server.id"], ondelete="CASCADE"),
        sa.PrimaryKeyConstraint("server_id", "role_id"),
    )
    op.create_table(
        "challenge",
        sa.Column("id", sa.Integer(), nullable=False),
        sa.Column("user_id", sa.Integer(), nullable=False),
        sa.Column("family", sa.String(), nullable=False),
        sa.Column("address", sa.String(), nullable=False),
        sa.Column("code", sa.String(), nullable=False),
        sa.Column("amount_wei", sa.Numeric(precision=78, scale=0), nullable=False),
        sa.Column("created_at", sa.DateTime(timezone=True), nullable=False),
        sa.Column("expires_at", sa.DateTime(timezone=True), nullable=False),
        sa.Column("used_at", sa.DateTime(timezone=True), nullable=True),
        sa.ForeignKeyConstraint(["user_id"], ["user.id"], ondelete="CASCADE"),
        sa.PrimaryKeyConstraint("id"),
        sa.UniqueConstraint("code"),
    )
    op.create_index(op.f("ix_challenge_address"), "challenge", ["address"], unique=False)
    op.create_index(op.f("ix_challenge_expires_at"), "challenge", ["expires_at"], unique=False)
    op.create_index(op.f("ix_challenge_user_id"), "challenge", ["user_id"], unique=False)
    op.create_table(
        "event",
        sa.Column("id", sa.BigInteger(), nullable=False),
        sa.Column("at", sa.DateTime(timezone=True), nullable=False),
        sa.Column("kind", sa.String(), nullable=False),
        sa.Column("server_id", sa.Integer(), nullable=True),
        sa.Column("actor", sa.String(), nullable=True),
        sa.Column("subject", sa.String(), nullable=True),
        sa.Column("role_id", sa.String(), nullable=True),
        sa.Column("rule_id", sa.Integer(), nullable=True),
        sa.Column("batch", sa.Uuid(), nullable=True),
        sa.Column("data", postgresql.JSONB(astext_type=sa.Text()), nullable=False),
        sa.ForeignKeyConstraint(["server_id"], ["server.id"], ondelete="CASCADE"),
        sa.PrimaryKeyConstraint("id"),
    )
    op.create_index(op.f("ix_event_batch"), "event", ["batch"], unique=False)
    op.create_index("ix_event_server_at", "event", ["server_id", "at"], unique=False)
    op.create_index(op.f("ix_event_subject"), "event", ["subject"], unique=False)
    op.create_table(
        "grant",
        sa.Column("id", sa.Integer(), nullable=False),
        sa.Column("server_id", sa.Integer(), nullable=False),
        sa.Column("discord_id", sa.String(), nullable=False),
        sa.Column("role_id", sa.String(), nullable=False),
        sa.Column("rule_ids", postgresql.ARRAY(sa.Integer()), nullable=False),
        sa.Column("state", sa.String(), nullable=False),
        sa.Column("had_before", sa.Boolean(), nullable=False),
        sa.Column("evidence", postgresql.JSONB(astext_type=sa.Text()), nullable=False),
        sa.Column("no_since", sa.DateTime(timezone=True), nullable=True),
        sa.Column("intended_at", sa.DateTime(timezone=True), nullable=True),
        sa.Column("next_at", sa.DateTime(timezone=True), nullable=True),
        sa.Column("attempts", sa.Integer(), nullable=False),
        sa.Column("last_error", sa.String(), nullable=True),
        sa.Column("created_at", sa.DateTime(timezone=True), nullable=False),
        sa.Column("updated_at", sa.DateTime(timezone=True), nullable=False),
        sa.ForeignKeyConstraint(["server_id"], ["server.id"], ondelete="CASCADE"),
        sa.PrimaryKeyConstraint("id"),
        sa.UniqueConstraint("server_id", "discord_id", "role_id"),
    )
    op.create_index(op.f("ix_grant_discord_id"), "grant", ["discord_id"], unique=False)
    op.create_index(
        "ix_grant_open", "grant", ["next_at"], unique=False, postgresql_where=sa.text("state IN ('giving', 'taking')")
    )
    op.create_index(op.f("ix_grant_server_id"), "grant", ["server_id"], unique=False)
    op.create_table(
        "member",
        sa.Column("server_id", sa.Integer(), nullable=False),
        sa.Column("discord_id", sa.String(), nullable=False),
        sa.Column("name", sa.String(), nullable=False),
        sa.Column("roles", postgresql.ARRAY(sa.Text()), nullable=False),
        sa.Column("pending", sa.Boolean(), nullable=False),
        sa.Column("left_at", sa.DateTime(timezone=True), nullable=True),
        sa.Column("seen_at", sa.DateTime(timezone=True), nullable=False),
        sa.ForeignKeyConstraint(["server_id"], ["server.id"], ondelete="CASCADE"),
        sa.PrimaryKeyConstraint("server_id", "discord_id"),
    )
    op.create_index(op.f("ix_member_discord_id"), "member", ["discord_id"], unique=False)
    op.create_table(
        "member_choice",
        sa.Column("server_id", sa.Integer(), nullable=False),
        sa.Column("user_id", sa.Integer(), nullable=False),
        sa.Column("use_wallets", sa.Boolean(), nullable=False),
        sa.Column("share_wallets", sa.Boolean(), nullable=False),
        sa.ForeignKeyConstraint(["server_id"], ["server.id"], ondelete="CASCADE"),
        sa.ForeignKeyConstraint(["user_id"], ["user.id"], ondelete="CASCADE"),
        sa.PrimaryKeyConstraint("server_id", "user_id"),
    )
    op.create_table(
        "notice",
        sa.Column("id", sa.Integer(), nullable=False),
        sa.Column("discord_id", sa.String(), nullable=False),
        sa.Column("server_id", sa.Integer(), nullable=True),
        sa.Column("kind", sa.String(), nullable=False),
        sa.Column("data", postgresql.JSONB(astext_type=sa.Text()), nullable=False),
        sa.Column("created_at", sa.DateTime(timezone=True), nullable=False),
        sa.Column("told_at", sa.DateTime(timezone=True), nullable=True),
        sa.ForeignKeyConstraint(["server_id"], ["server.id"], ondelete="CASCADE"),
        sa.PrimaryKeyConstraint("id"),
    )
    op.create_index(op.f("ix_notice_discord_id"), "notice", ["discord_id"], unique=False)
    op.create_table(
        "rule",
        sa.Column("id", sa.Integer(), nullable=False),
        sa.Column("server_id", sa.Integer(), nullable=False),
        sa.Column("name", sa.String(), nullable=False),
        sa.Column("role_id", sa.String(), nullable=False),
        sa.Column("role_name", sa.String(), nullable=False),
        sa.Column("role_color", sa.String(), nullable=False),
        sa.Column("expression", postgresql.JSONB(astext_type=sa.Text()), nullable=False),
        sa.Column("verification_type", sa.String(), nullable=False),
        sa.Column("contract_address", sa.String(), nullable=False),
        sa.Column("blockchain", sa.String(), nullable=False),
        sa.Column("min_tokens", sa.Integer(), nullable=False),
        sa.Column("trait_type", sa.String(), nullable=True),
        sa.Column("trait_value", sa.String(), nullable=True),
        sa.Column("token_ids", postgresql.ARRAY(sa.Text()), nullable=False),
        sa.Column("removal_mode", sa.String(), nullable=False),
        sa.Column("removal_hours", sa.Integer(), nullable=False),
        sa.Column("state", sa.String(), nullable=False),
        sa.Column("pause_reason", sa.String(), nullable=True),
        sa.Column("created_by", sa.String(), nullable=False),
        sa.Column("created_at", sa.DateTime(timezone=True), nullable=False),
        sa.Column("updated_at", sa.DateTime(timezone=True), nullable=False),
        sa.Column("deleted_at", sa.DateTime(timezone=True), nullable=True),
        sa.ForeignKeyConstraint(["server_id"], ["server.id"], ondelete="CASCADE"),
        sa.PrimaryKeyConstraint("id"),
    )
    op.create_index(op.f("ix_rule_role_id"), "rule", ["role_id"], unique=False)
    op.create_index(op.f("ix_rule_server_id"), "rule", ["server_id"], unique=False)
    op.create_table(
        "session",
        sa.Column("id_hash", sa.LargeBinary(), nullable=False),
        sa.Column("user_id", sa.Integer(), nullable=False),
        sa.Column("user_agent", sa.String(), nullable=False),
        sa.Column("created_at", sa.DateTime(timezone=True), nullable=False),
        sa.Column("seen_at", sa.DateTime(timezone=True), nullable=False),
        sa.Column("expires_at", sa.DateTime(timezone=True), nullable=False),
        sa.ForeignKeyConstraint(["user_id"], ["user.id"], ondelete="CASCADE"),
        sa.PrimaryKeyConstraint("id_hash"),
    )
    op.create_index(op.f("ix_session_expires_at"), "session", ["expires_at"], unique=False)
    op.create_index(op.f("ix_session_user_id"), "session", ["user_id"], unique=False)
    op.create_table(
        "sign_in",
        sa.Column("state_hash", sa.LargeBinary(), nullable=False),
        sa.Column("cookie_hash", sa.LargeBinary(), nullable=False),
        sa.Column("verifier", sa.String(), nullable=False),
        sa.Column("return_path", sa.String(), nullable=False),
        sa.Column("purpose", sa.String(), nullable=False),
        sa.Column("user_id", sa.Integer(), nullable=True),
        sa.Column("expires_at", sa.DateTime(timezone=True), nullable=False),
        sa.ForeignKeyConstraint(["user_id"], ["user.id"], ondelete="CASCADE"),
        sa.PrimaryKeyConstraint("state_hash"),
    )
    op.create_index(op.f("ix_sign_in_expires_at"), "sign_in", ["expires_at"], unique=False)
    op.create_table(
        "token",
        sa.Column("collection_id", sa.Integer(), nullable=False),
        sa.Column("token_id", sa.String(), nullable=False),
        sa.Column("traits", postgresql.JSONB(astext_type=sa.Text()), nullable=False),
        sa.Column("updated_at", sa.DateTime(timezone=True), nullable=False),
        sa.ForeignKeyConstraint(["collection_id"], ["collection.id"], ondelete="CASCADE"),
        sa.PrimaryKeyConstraint("collection_id", "token_id"),
    )
    op.create_table(
        "wallet",
        sa.Column("id", sa.Integer(), nullable=False),
        sa.Column("user_id", sa.Integer(), nullable=False),
        sa.Column("family", sa.String(), nullable=False),
        sa.Column("address", sa.String(), nullable=False),
        sa.Column("method", sa.String(), nullable=False),
        sa.Column("evidence", postgresql.JSONB(astext_type=sa.Text()), nullable=False),
        sa.Column("created_at", sa.DateTime(timezone=True), nullable=False),
        sa.ForeignKeyConstraint(["user_id"], ["user.id"], ondelete="CASCADE"),
        sa.PrimaryKeyConstraint("id"),
        sa.UniqueConstraint("family", "address"),
    )
    op.create_index(op.f("ix_wallet_user_id"), "wallet", ["user_id"], unique=False)


def downgrade() -> None:
    op.drop_index(op.f("ix_wallet_user_id"), table_name="wallet")
    op.drop_table("wallet")
    op.drop_table("token")
    op.drop_index(op.f("ix_sign_in_expires_at"), table_name="sign_in")
    op.drop_table("sign_in")
    op.drop_index(op.f("ix_session_user_id"), table_name="session")
    op.drop_index(op.f("ix_session_expires_at"), table_name="session")
    op.drop_table("session")
    op.drop_index(op.f("ix_rule_server_id"), table_name="rule")
    op.drop_index(op.f("ix_rule_role_id"), table_name="rule")
    op.drop_table("rule")
    op.drop_index(op.f("ix_notice_discord_id"), table_name="notice")
    op.drop_table("notice")
    op.drop_table("member_choice")
    op.drop_index(op.f("ix_member_discord_id"), table_name="member")
    op.drop_table("member")
    op.drop_index(op.f("ix_grant_server_id"), table_name="grant")
    op.drop_index("ix_grant_open", table_name="grant", postgresql_where=sa.text("state IN ('giving', 'taking')"))
    op.drop_index(op.f("ix_grant_discord_id"), table_name="grant")
    op.drop_table("grant")
    op.drop_index(op.f("ix_event_subject"), table_name="event")
    op.drop_index("ix_event_server_at", table_name="event")
    op.drop_index(op.f("ix_event_batch"), table_name="event")
    op.drop_table("event")
    op.drop_index(op.f("ix_challenge_user_id"), table_name="challenge")
    op.drop_index(op.f("ix_challenge_expires_at"), table_name="challenge")
    op.drop_index(op.f("ix_challenge_address"), table_name="challenge")
    op.drop_table("challenge")
    op.drop_table("breaker")
    op.drop_index(op.f("ix_access_discord_id"), table_name="access")
    op.drop_table("access")
    op.drop_table("user")
    op.drop_table("server")
    op.drop_table("schedule")
    op.drop_table("observation")
    op.drop_index("ix_due_next", table_name="due")
    op.drop_table("due")
    op.drop_table("cursor")
    op.drop_table("collection")
