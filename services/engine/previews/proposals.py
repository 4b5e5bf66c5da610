"""What an admin may propose and preview before it is saved: each kind of change to a server's rules."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from services.rules.draft import RuleDraft
from services.rules.replacements.condition_successors import MigrationOrder
from services.rules.replacements.new_role import RoleOrder


@dataclass(frozen=True, slots=True)
class NewRule:
    """A new rule."""

    draft: RuleDraft


@dataclass(frozen=True, slots=True)
class NewTiers:
    """Several new rules of one server, one for each tier, which are made together."""

    drafts: tuple[RuleDraft, ...]


@dataclass(frozen=True, slots=True)
class RuleChange:
    """Changes to a stored rule, by the names of the fields in the JSON."""

    rule_id: int
    changes: Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class RuleDeletion:
    """The end of a stored rule."""

    rule_id: int


@dataclass(frozen=True, slots=True)
class Activation:
    """Rules in shadow that become active together."""

    server_id: int
    rule_ids: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class MoveEnd:
    """The end of a server's open move from its former bot."""

    server_id: int


@dataclass(frozen=True, slots=True)
class NewContract:
    """Another contract in place of one whose tokens have moved."""

    server_id: int
    order: MigrationOrder


@dataclass(frozen=True, slots=True)
class MigrationEnd:
    """The end of a migration: the former contract no longer counts."""

    server_id: int
    migration_id: int


@dataclass(frozen=True, slots=True)
class NewRole:
    """Another role in place of one that rules give."""

    server_id: int
    order: RoleOrder


OneRule = NewRule | RuleChange
"""The proposals whose conditions can be tried on an address and counted on chain."""
RuleProposal = OneRule | NewTiers | RuleDeletion | Activation | NewContract | MigrationEnd | NewRole
"""The proposals that make, change or delete rules."""
Proposal = RuleProposal | MoveEnd
