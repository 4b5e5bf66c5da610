"""The conditions of a rule in the form: the list, its groups, and the rule in words."""

from dataclasses import dataclass, replace

from locales import N_, _, sentences
from services.core.actors import Actor
from services.rules import single_source
from services.rules.expression import MAX_LEAVES, Expression, Requirement
from services.rules.wording import Line, Names, composed_name, in_lines, in_words, name_of_negated
from state.core.gate import signed_in
from state.rule_form.condition_draft import ConditionDraft, draft_of
from state.rule_form.condition_fields import ConditionFields
from state.rule_form.condition_groups import ALL, ANY, MODES, NONE, Condition, Group, to_tree

ROOT = 0
"""The number of the group that holds everything."""
UNFILLED = N_("Not filled in yet")


@dataclass(frozen=True)
class ConditionView:
    """One condition's row; `ready` when every field is filled."""

    number: int
    title: str
    text: str
    ready: bool
    negated: bool
    caveat: str
    """The consequence of having only one source for it; empty if there are more."""


@dataclass(frozen=True)
class SectionView:
    """The conditions of the whole rule (number 0) or of one group in it."""

    number: int
    title: str
    mode: str
    least: str
    size: int
    rows: list[ConditionView]


@dataclass(frozen=True)
class _Slot:
    number: int
    group: int
    draft: ConditionDraft
    negated: bool = False


@dataclass(frozen=True)
class _Join:
    number: int
    mode: str = ALL
    least: int = 1


class ConditionList(ConditionFields, mixin=True):
    """The open condition and the list of the others."""

    sections: list[SectionView] = []
    composed: bool = False
    added: int = 0
    """Changes with each condition that the person adds."""
    caveat: str = ""
    """The open condition's caveat."""
    lines: list[Line] = []
    too_deep: bool = False
    """Whether the rule has groups within groups, which only the API can edit."""
    _slots: tuple[_Slot, ...] = (_Slot(1, ROOT, ConditionDraft()),)
    _joins: tuple[_Join, ...] = (_Join(ROOT),)
    _stored: Expression | None = None
    _numbered: int = 1
    """The highest number that a condition has had. None is given twice: what a browser sends late names one."""

    def _begin(self) -> None:
        """Start with one empty condition."""
        self._slots, self._joins = (_Slot(1, ROOT, ConditionDraft()),), (_Join(ROOT),)
        self.open, self.too_deep, self._stored, self._numbered = 1, False, None, 1
        self._fill_in(self._slots[0].draft)

    def _resume(self, group: Group | None, stored: Expression, names: Names) -> None:
        """Show the conditions of a stored rule; `group` is None if the form cannot show its depth."""
        self._begin()
        if group is None:
            self.too_deep, self._stored = True, stored
            return
        self._slots, self._joins = (), (_Join(ROOT, group.mode, group.least),)
        for part in group.parts:
            if isinstance(part, Condition):
                self._keep(part, ROOT, names)
                continue
            number = max(join.number for join in self._joins) + 1
            self._joins = (*self._joins, _Join(number, part.mode, part.least))
            for inner in part.parts:
                if isinstance(inner, Condition):
                    self._keep(inner, number, names)
        self._show(self._ordered()[0].number)

    def _keep(self, part: Condition, group: int, names: Names) -> None:
        leaf = part.leaf
        draft = draft_of(leaf, names.get((leaf.chain, leaf.contract), ""))
        self._slots = (*self._slots, _Slot(len(self._slots) + 1, group, draft, part.negated))

    def _sync(self) -> None:
        """Copy the fields into the list, and update the rule in words."""
        filled = self._filled_in()
        self.caveat = _caveat(filled)
        self._slots = tuple(replace(slot, draft=filled) if slot.number == self.open else slot for slot in self._slots)
        negated = self._joins[0].mode == NONE or any(slot.negated for slot in self._slots)
        self.composed = len(self._slots) > 1 or len(self._joins) > 1 or negated
        names = self._names()
        titles = {
            slot.number: _("Condition {number}").format(number=place) for place, slot in enumerate(self._ordered(), 1)
        }
        self.sections = [
            SectionView(
                number=join.number,
                title="" if join.number == ROOT else _("Group {number}").format(number=place),
                mode=join.mode,
                least=str(join.least),
                size=len(self._of(join.number)) + (len(self._joins) - 1 if join.number == ROOT else 0),
                rows=[_row(slot, titles[slot.number], names) for slot in self._of(join.number)],
            )
            for place, join in enumerate(self._joins)
        ]
        tree = self._stored if self.too_deep else self._tree(only_ready=True)
        self.lines = list(in_lines(tree, names)) if tree else []

    def _of(self, group: int) -> list[_Slot]:
        return [slot for slot in self._slots if slot.group == group]

    def _ordered(self) -> list[_Slot]:
        return [slot for join in self._joins for slot in self._of(join.number)]

    def _names(self) -> Names:
        return {(slot.draft.leaf.chain, slot.draft.leaf.contract): slot.draft.collection for slot in self._slots}

    def _tree(self, *, only_ready: bool = False) -> Expression | None:
        """Return the whole expression; None while it is empty."""
        root, *inner = self._joins
        groups = [Group(join.mode, self._parts(join.number, only_ready), join.least) for join in inner]
        parts = (*self._parts(ROOT, only_ready), *(group for group in groups if group.parts))
        return to_tree(Group(root.mode, parts, root.least)) if parts else None

    def _parts(self, group: int, only_ready: bool) -> tuple[Condition, ...]:
        return tuple(
            Condition(slot.draft.leaf, slot.negated)
            for slot in self._of(group)
            if not only_ready or _is_ready(slot.draft)
        )

    def _composed_name(self) -> str:
        """Return the automatic name of the rule as it is now."""
        root, *inner = self._joins
        groups = [self._name_of(join, []) for join in inner]
        bracketed = [
            f"({name})" if name and len(self._of(join.number)) > 1 else name
            for join, name in zip(inner, groups, strict=True)
        ]
        return self._name_of(root, bracketed if self._of(ROOT) or len(inner) > 1 or root.mode == NONE else groups)

    def _name_of(self, join: _Join, groups: list[str]) -> str:
        own = ((slot.draft.name, slot.negated) for slot in self._of(join.number))
        names = [*(name_of_negated(name) if negated else name for name, negated in own), *groups]
        least = {ALL: len(names), ANY: 1, NONE: 0}.get(join.mode, min(join.least, len(names)))
        return composed_name(names, least)

    def _at(self, number: int, **chosen: str) -> bool:
        draft = next((slot.draft for slot in self._slots if slot.number == number), None)
        if draft is None or (chosen and all(getattr(draft, name) == value for name, value in chosen.items())):
            return False
        if number != self.open:
            self._show(number)
            self._changed()
        return True

    def _show(self, number: int) -> None:
        slot = next(slot for slot in self._slots if slot.number == number)
        self.open = number
        self._fill_in(slot.draft)

    @signed_in
    async def add_condition(self, actor: Actor, group: int) -> None:
        """Add an empty condition on the previous one's chain, and open it."""
        self._add(group)

    def _add(self, group: int) -> None:
        if not any(join.number == group for join in self._joins) or len(self._slots) >= MAX_LEAVES or self.too_deep:
            return
        self._numbered = max(self._numbered, *(slot.number for slot in self._slots)) + 1
        self._slots = (*self._slots, _Slot(self._numbered, group, ConditionDraft(chain=self.chain)))
        self._show(self._numbered)
        self.added += 1
        self._changed()

    @signed_in
    async def add_group(self, actor: Actor) -> None:
        """Add a group with one empty condition."""
        if len(self._slots) < MAX_LEAVES and not self.too_deep:
            number = max(join.number for join in self._joins) + 1
            self._joins = (*self._joins, _Join(number, ANY))
            self._add(number)

    @signed_in
    async def take_list(self, actor: Actor, number: int, name: str, count: int) -> None:
        """Use the list of addresses that was stored just now for this condition; another one may be open by now.

        Saving checks that the list is there.
        """
        stored = {"list": name[:64], "count": str(count)[:10]}
        if number == self.open:
            self.details = {**self.details, **stored}
        else:
            self._slots = tuple(
                replace(slot, draft=replace(slot.draft, details=tuple((dict(slot.draft.details) | stored).items())))
                if slot.number == number
                else slot
                for slot in self._slots
            )
        self._changed()

    @signed_in
    async def open_condition(self, actor: Actor, number: int):
        """Open another condition."""
        if number != self.open and any(slot.number == number for slot in self._slots):
            self._show(number)
            self._changed()
            async for outcome in self._read_traits(actor):
                yield outcome

    @signed_in
    async def remove_condition(self, actor: Actor, number: int) -> None:
        """Remove a condition, and its group with the last one in it; one condition always stays."""
        left = tuple(slot for slot in self._slots if slot.number != number)
        if not left:
            return
        groups = {ROOT, *(slot.group for slot in left)}
        self._slots, self._joins = left, tuple(join for join in self._joins if join.number in groups)
        if number == self.open:
            self._show(self._ordered()[0].number)
        self._changed()

    @signed_in
    async def negate(self, actor: Actor, number: int, value: bool) -> None:
        """Set whether a condition must not be met."""
        self._slots = tuple(replace(slot, negated=value) if slot.number == number else slot for slot in self._slots)
        self._changed()

    @signed_in
    async def choose_mode(self, actor: Actor, group: int, value: str) -> None:
        """Choose how many of a group's parts must hold."""
        if value in MODES:
            self._joins = tuple(replace(join, mode=value) if join.number == group else join for join in self._joins)
            self._changed()

    @signed_in
    async def enter_least(self, actor: Actor, group: int, value: float | None) -> None:
        """Set the number in "at least so many of"."""
        least = int(min(max(value or 1, 1), MAX_LEAVES))
        self._joins = tuple(replace(join, least=least) if join.number == group else join for join in self._joins)
        self._changed()


def _row(slot: _Slot, title: str, names: Names) -> ConditionView:
    ready = _is_ready(slot.draft)
    return ConditionView(
        number=slot.number,
        title=title,
        text=in_words(slot.draft.leaf, names) if ready else _(UNFILLED),
        ready=ready,
        negated=slot.negated,
        caveat=_caveat(slot.draft),
    )


def _caveat(draft: ConditionDraft) -> str:
    return sentences(*(part for one in single_source.of_condition(draft.leaf) for part in (one.text, one.remedy)))


def _is_ready(draft: ConditionDraft) -> bool:
    leaf: Requirement = draft.leaf
    if leaf.kind.source != "anything" and not leaf.kind.chainless and not leaf.contract.strip():
        return False
    if leaf.kind.names_trait and not (leaf.traits and all(text for trait in leaf.traits for text in trait)):
        return False
    if leaf.kind.details is not None and leaf.details is None:
        return False
    return not leaf.kind.names_ids or bool(leaf.token_ids)
