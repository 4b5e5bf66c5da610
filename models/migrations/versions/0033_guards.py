"""A function by which a statement ends its transaction when something is not as expected"""

from alembic import op

revision = "0033"
down_revision = "0032"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.execute(
        """
        CREATE FUNCTION guard(holds boolean, what text) RETURNS integer LANGUAGE plpgsql AS $$
        BEGIN
            IF holds IS NOT TRUE THEN
                RAISE EXCEPTION USING ERRCODE = 'HF001', MESSAGE = what;
            END IF;
            RETURN 1;
        END
        $$
        """
    )


def downgrade() -> None:
    op.execute("DROP FUNCTION guard(boolean, text)")
