"""The shapes of JSON that the API takes and answers with; generate.py writes this file from the OpenAPI document."""

from __future__ import annotations

from typing import Any, Literal, NotRequired, TypeAlias, TypedDict


class AcceptedAnswer(TypedDict):
    """The work is queued and will be done soon."""

    message: str


class ActivationAnswer(TypedDict):
    """How many rules became active; a rule that was no longer in shadow stays as it was."""

    activated: int


class ActivationPayload(TypedDict):
    """Rules in shadow of one server, by their ids."""

    serverId: int
    ruleIds: list[int]


class AlertsHealth(TypedDict):
    """Whether alerts reach the admins' log channel."""

    state: str
    text: str
    mend: str | None
    channelId: str | None
    error: str | None


class BotHealth(TypedDict):
    """Whether the bot is in the server and connected to Discord."""

    state: str
    text: str
    mend: str | None
    inServer: bool
    connected: bool
    heardAt: str | None
    since: str | None


class BreakerAnswer(TypedDict):
    """The number of roles whose removals continue now."""

    success: bool
    roles: int


class BreakerEventData(TypedDict):
    """The role whose removals wait for an admin, and how many of its holders would have lost it."""

    roleId: str | None
    wouldLose: int | None
    holders: int | None


class BreakerHealth(TypedDict):
    """Removals of a role that were stopped because too many members would have lost it at once."""

    state: str
    text: str
    mend: str | None
    roleId: str
    roleName: str
    wouldLose: int
    holders: int
    since: str


class BreakerPayload(TypedDict):
    """Whether held-back removals continue, or everybody keeps the role; for one role or all.

    With `seen`, nothing happens (409) if the breaker has tripped again or more members wait than were shown.
    """

    approve: bool
    roleId: NotRequired[str | None]
    seen: NotRequired[SeenPayload | None]


class BreakerTrippedEvent(TypedDict):
    """Removals of a role are held back until an admin decides."""

    id: str
    createdAt: str
    serverId: int
    guildId: str
    event: Literal["breaker.tripped"]
    data: BreakerEventData


class CallResult(TypedDict):
    """What a function answers about a wallet: a number or a text, true or false. Without a value, `reason` says why."""

    value: str | None
    reason: str | None
    block: int
    source: str


class CallTrialPayload(TypedDict):
    """A view call and the wallet to ask about. The service reports missing and wrong fields."""

    chain: NotRequired[str | None]
    contract: NotRequired[str | None]
    function: NotRequired[str | None]
    args: NotRequired[list[Any]]
    path: NotRequired[str | None]
    wallet: NotRequired[str | None]


class CollectionPayload(TypedDict):
    """A contract's address on a chain, or a collection's page on OpenSea or Magic Eden."""

    input: NotRequired[str | None]
    blockchain: NotRequired[str | None]


class CollectionView(TypedDict):
    """A collection on one chain."""

    name: str
    contractAddress: str
    blockchain: str


class CoverageDay(TypedDict):
    """The holders of all roles of a move together, as last counted on one day (in UTC)."""

    day: str
    right: int
    wrong: int
    unverified: int
    unknown: int


class DeletedAnswer(TypedDict):
    """The rule is deleted; the roles of `members` people are decided again now."""

    success: bool
    members: int


class Done(TypedDict):
    """The call has succeeded."""

    success: bool


class ExportedList(TypedDict):
    """A whole list of addresses that rules name."""

    list: str
    count: int
    addresses: list[str]


class ExportedMember(TypedDict):
    """A member; wallets are shortened, and empty without the member's consent for this server."""

    discordId: str
    name: str
    verified: bool
    wallets: list[str]
    roles: list[ExportedRole]


class ExportedRole(TypedDict):
    """A role of the member's that at least one rule is about."""

    roleId: str
    roleName: str
    grantedByUs: bool


class ExportedRule(TypedDict):
    """A rule with its role by id and by name, so that another server's role of that name is found."""

    ruleName: str
    roleId: str
    roleName: str
    roleColor: str
    expression: dict[str, Any]
    removal: RemovalPolicy
    state: str
    takesOver: bool
    delegated: bool


class FollowAgainAnswer(TypedDict):
    """The number of members for whom the rules decide about the role again."""

    members: int


class FollowAgainPayload(TypedDict):
    """The role, and one member unless the call is about all of them."""

    roleId: str
    discordId: NotRequired[str | None]


class HealthView(TypedDict):
    """A server's health at one moment; `state` is the worst of all."""

    state: str
    checkedAt: str
    bot: BotHealth
    permissions: PermissionsHealth
    roleOrder: RoleOrderHealth
    lastSweep: SweepHealth
    providers: list[ProviderHealth]
    lag: list[LagHealth]
    pausedRules: list[PausedRule]
    breakers: list[BreakerHealth]
    rivals: list[RivalHealth]
    truces: list[TruceHealth]
    queue: QueueHealth
    unknown: list[UnknownReading]
    alerts: AlertsHealth
    quotas: list[QuotaHealth]


class HeldBackView(TypedDict):
    """The stopped removals of one role.

    `wouldLose` of `holders` tripped the breaker: members whose role was taken within the day, is being taken or
    was about to be. `losers` are the members who wait now, `total` of them. `cause` is the latest change to a
    rule before the trip, in words, or empty.
    """

    roleId: str
    roleName: str
    roleColor: str
    trippedAt: str
    wouldLose: int
    holders: int
    losers: list[Loser]
    total: int
    cause: str


class HolderName(TypedDict):
    """A holder of a role by name."""

    discordId: str
    name: str


class HoldersPage(TypedDict):
    """One page of a role's holders with one standing; pages are counted from 1.

    `named` is false if so few are right, or so few are wrong, that names would reveal which wallet is whose.
    """

    members: list[HolderName]
    page: int
    pageSize: int
    total: int
    named: bool


class ImportPayload(TypedDict):
    """A document of rules and where it comes from: `collabland`, `guild` or `holdfast`.

    The document is JSON, or a string with that JSON: at most 1 MiB and 200 rules. With `apply` its rules are
    created in shadow; `only` chooses some of them by their `number`.
    """

    source: str
    document: Any
    apply: NotRequired[bool]
    only: NotRequired[list[int] | None]


class ImportView(TypedDict):
    """The rules that a document becomes in a server; `warning` is empty, or says that there is no room for them all."""

    rules: list[ImportedRule]
    skipped: list[SkippedEntry]
    warning: str
    applied: bool


class ImportedRule(TypedDict):
    """The rule that an entry becomes: its `payload`, its requirements in words, and notes about it.

    `number` is the rule's number in the document. `id` is set once the rule has been created.
    """

    number: int
    what: str
    name: str
    payload: dict[str, Any]
    roleId: str
    roleName: str
    roleColor: str
    summary: str
    lines: list[Line]
    notes: list[str]
    id: int | None


class LagHealth(TypedDict):
    """How far behind a chain its follower is.

    `kind` is what it follows: `contracts`, members' `wallets` or `coins`; empty for a chain that is left to
    sweeps. `block` was read last, `behind` counts the newer ones; `seconds` have passed since the last poll.
    """

    state: str
    text: str
    mend: str | None
    chain: str
    kind: str
    block: int
    behind: int
    seconds: int


class LeftAlone(TypedDict):
    """A member whose role is left alone."""

    discordId: str
    name: str
    until: str


class LeftRule(TypedDict):
    """A rule that names the old contract and stays unchanged, and why."""

    id: int
    name: str
    why: str


class Line(TypedDict):
    """One line of a rule: its indentation and its text."""

    depth: int
    text: str


class LogLine(TypedDict):
    """One line of a server's log; people and roles by their Discord ids and, where known, by name.

    It is `undoable` while its batch can be undone.
    """

    id: int
    at: str
    kind: str
    text: str
    actor: str | None
    actorName: str | None
    subject: str | None
    subjectName: str | None
    roleId: str | None
    roleName: str | None
    ruleId: int | None
    ruleName: str | None
    batch: str | None
    undoable: bool
    data: dict[str, Any]
    requestId: str | None


class Loser(TypedDict):
    """A member who would lose the role, and what two agreeing readings show of their holdings."""

    discordId: str
    name: str
    reason: str


class MemberImpact(TypedDict):
    """The outcome for one role of one member: `gain`, `keep`, `lose` or `unknown`."""

    discordId: str
    name: str
    roleId: str
    roleName: str
    outcome: str


class MemberRoleView(TypedDict):
    """A role of the server's rules, and whether this member has it."""

    roleId: str
    roleName: str
    roleColor: str
    held: bool
    grantedByUs: bool


class MemberRow(TypedDict):
    """A member; wallets are shortened, and empty without the member's consent for this server."""

    discordId: str
    name: str
    avatarUrl: str | None
    verified: bool
    walletCount: int
    wallets: list[str]
    roles: list[MemberRoleView]


class MemberWhy(TypedDict):
    """A member and every role that a rule or the ledger names."""

    discordId: str
    name: str
    roles: list[RoleWhy]
    protected: bool


class MembersPage(TypedDict):
    """One page of members; pages are counted from 1, `total` counts all matches."""

    members: list[MemberRow]
    page: int
    pageSize: int
    total: int


class MigratedRule(TypedDict):
    """A rule that is carried over: what it asks for `before` and `after`, in words, and notes about it."""

    id: int
    name: str
    roleId: str
    roleName: str
    roleColor: str
    state: str
    before: str
    after: str
    lines: list[Line]
    notes: list[str]


class MigrationPayload(TypedDict):
    """The old contract and the new one, which is on the same chain unless `newChain` names another.

    `sameIds` says that each token has the same ID in the new contract. With `both`, both contracts count `until`
    a date or, without one, until somebody ends the migration. Rules are changed only with `apply`.
    """

    chain: NotRequired[str | None]
    contract: NotRequired[str | None]
    newChain: NotRequired[str | None]
    newContract: NotRequired[str | None]
    sameIds: NotRequired[bool]
    both: NotRequired[bool]
    until: NotRequired[str | None]
    apply: NotRequired[bool]


class MigrationView(TypedDict):
    """What a migration does, or did, to a server's rules; `batch` undoes it, `id` is set if both contracts count."""

    rules: list[MigratedRule]
    left: list[LeftRule]
    applied: bool
    batch: str | None
    id: int | None


class MissingPermission(TypedDict):
    """A permission that the bot lacks in the whole server, and its purpose."""

    name: str
    text: str
    mend: str


class MoveApprovalPayload(TypedDict):
    """The open move whose end is approved, as it was read: `seen` is null if none was open, which approves nothing.

    Without the field, the end of any is approved.
    """

    seen: NotRequired[SeenMovePayload | None]


class MovePayload(TypedDict):
    """A move: the roles that are handed over, until when, from when (now by default), and where to announce it.

    A date without a time is in UTC: `until` means the end of that day, `beginsAt` its start. `seen` is the open
    move that may be replaced, or null if none may be; without the field, it replaces any.
    """

    until: str
    roles: list[str]
    beginsAt: NotRequired[str | None]
    channelId: NotRequired[str | None]
    seen: NotRequired[SeenMovePayload | None]


class MovePreview(TypedDict):
    """How many members would gain, keep or lose a role, and their names; `looked` of `concerned` members were read."""

    gain: int
    keep: int
    lose: int
    unknown: int
    members: list[MemberImpact]
    looked: int
    concerned: int


class MoveRival(TypedDict):
    """Another bot or person who moved the role; `name` is null where the server's audit log does not say it.

    A token without the scope for members reads no person's name.
    """

    name: str | None
    lastAt: str


class MoveUndone(TypedDict):
    """The result of undoing a move, in words; `members` is how many get a role back at once.

    `messagesUpdated` is false if Discord did not let us change the panel or the announcement.
    """

    text: str
    members: int
    messagesUpdated: bool


class MoveView(TypedDict):
    """A move: `planned`, `running`, `over` (it waits for an approval) or `approved`.

    Until the approval nobody loses a role of the move that others gave them, and nobody without a wallet loses
    one. `days` are the stored counts of all roles together. `messagesUpdated` is false if Discord did not let us
    change the panel or the announcement.
    """

    state: str
    beginsAt: str
    until: str
    channelId: str | None
    approvedAt: str | None
    countedAt: str
    roles: list[MovingRole]
    days: list[CoverageDay]
    messagesUpdated: bool


class MovingRole(TypedDict):
    """A handed-over role: its holders by standing, and who else moves it.

    `right`: a rule says yes to their wallets. `wrong`: all rules say no. `unverified`: no wallet of theirs counts
    here. `unknown`: no active rule, or their wallets could not be read. `taken` counts removals since the
    approval. `decided` is whether an active rule gives the role: without one, every holder with a wallet is
    unknown.
    """

    roleId: str
    roleName: str
    roleColor: str
    right: int
    wrong: int
    unverified: int
    unknown: int
    taken: int
    decided: bool
    rivals: list[MoveRival]


class NoEventData(TypedDict):
    """Nothing: a test event has no subject."""


class PausedRule(TypedDict):
    """A paused rule, since when and why; `byItself` if it resumes automatically after the remedy."""

    state: str
    id: int
    name: str
    roleId: str
    roleName: str
    since: str | None
    cause: str
    reason: str
    mend: str
    byItself: bool


class PermissionsHealth(TypedDict):
    """Permissions that the bot lacks; `known` is false before the first check."""

    state: str
    text: str
    mend: str | None
    known: bool
    missing: list[MissingPermission]


class PreviewAnswer(MovePreview):
    """How many members would gain, keep or lose the role or are unknown, and their names.

    `looked` of `concerned` members were read; in a large server these are the holders of the role and a sample of
    the rest. `members` is empty if fewer than five would have the role and a condition on single tokens, traits,
    addresses or a function could tell whose wallet is whose.
    """

    singleSources: list[SingleSource]


class PreviewPayload(TypedDict):
    """A proposal: a new rule or, with `id`, a change to that rule, its new `state`, or its deletion.

    `activate` lists ids of rules in shadow in the server `serverId`, to preview what they would do if all were
    active.
    """

    maxTokens: NotRequired[Any]
    traits: NotRequired[list[TraitPayload] | None]
    ruleName: NotRequired[str | None]
    contractAddress: NotRequired[str | None]
    blockchain: NotRequired[str | None]
    verificationType: NotRequired[str | None]
    minTokens: NotRequired[Any]
    roleId: NotRequired[str | None]
    roleColor: NotRequired[str | None]
    traitType: NotRequired[str | None]
    traitValue: NotRequired[str | None]
    tokenIds: NotRequired[list[str] | None]
    roleName: NotRequired[str | None]
    expression: NotRequired[dict[str, Any] | None]
    removal: NotRequired[RuleRemoval]
    shadow: NotRequired[bool]
    takesOver: NotRequired[bool]
    delegated: NotRequired[bool]
    serverId: NotRequired[int]
    state: NotRequired[str | None]
    id: NotRequired[int | None]
    delete: NotRequired[bool]
    activate: NotRequired[list[int] | None]
    min: NotRequired[str | None]
    max: NotRequired[str | None]
    function: NotRequired[str | None]
    args: NotRequired[list[Any] | None]
    path: NotRequired[str | None]
    compare: NotRequired[str | None]
    value: NotRequired[str | None]
    addresses: NotRequired[list[Any] | None]
    list: NotRequired[str | int | None]
    count: NotRequired[str | int | None]
    family: NotRequired[str | None]


class ProtectedMember(TypedDict):
    """A member who keeps every role that we gave them; the name of an unknown member is the id."""

    discordId: str
    name: str


class ProtectedRole(TypedDict):
    """A role that we take from nobody; `by` and `since` say who protected it and when, while the log has the line."""

    roleId: str
    roleName: str
    by: str | None
    since: str | None


class ProtectionPayload(TypedDict):
    """Whether the member or the role is protected from now on."""

    protected: bool


class ProtectionView(TypedDict):
    """Everything that is protected in a server, by name."""

    members: list[ProtectedMember]
    roles: list[ProtectedRole]


class ProviderHealth(TypedDict):
    """A provider. `answers`: ok, stale, down, busy, confused, refused, off or unknown.

    `used` says whether a rule of this server depends on it; `age` is the age of its newest block in seconds.
    """

    state: str
    text: str
    mend: str | None
    provider: str
    name: str
    kind: str
    chain: str | None
    answers: str
    since: str | None
    checkedAt: str | None
    block: int | None
    age: int | None
    reason: str | None
    used: bool


class QueueHealth(TypedDict):
    """Members who wait to be reconciled, role changes that wait, and how many of each have failed before."""

    state: str
    text: str
    mend: str | None
    due: int
    oldestAt: str | None
    failing: int
    writes: int
    writesFailing: int


class QuotaHealth(TypedDict):
    """The reads of a marketplace's key: `left` of `reads` in its window, which ends at `backAt`.

    The shares overlap: reads that are reserved for no use count in each of them.
    """

    state: str
    text: str
    mend: str | None
    provider: str
    name: str
    reads: int
    left: int
    backAt: str | None
    shares: list[QuotaShare]


class QuotaShare(TypedDict):
    """How much one use of a marketplace's key may read now; `backAt` is when it may read again if that is nothing."""

    use: str
    name: str
    left: int
    backAt: str | None


class ReachAnswer(TypedDict):
    """A count that has begun; its id is for `GET /api/verification-rules/reach/{id}`."""

    id: int


class ReachOnChain(TypedDict):
    """How many addresses meet a condition on this chain, and up to which block; `holders` is null without a number."""

    chain: str
    holders: int | None
    block: int | None


class ReachView(TypedDict):
    """A rule's numbers: `state` is `counting`, `done` or `failed`.

    `holders` and `verifiedHere` are null until it is done. `reason` says why it failed, or what nobody confirms.
    """

    id: int
    state: str
    progress: float
    holders: int | None
    verifiedHere: int | None
    chains: list[ReachOnChain]
    reason: str | None


class RemovalPolicy(TypedDict):
    """When a role that no rule gives any more is taken: `now`, or after some hours of `grace`."""

    mode: str
    hours: int


class RequirementView(TypedDict):
    """One requirement and the last known holdings.

    `wallet` is set only for people who may see it. For anybody else a large `held` has three significant digits,
    and `reason` hides token ids: both can name the wallet. Amounts are numbers of tokens, or decimal texts: those
    of coins, and all from 2^53 on.
    """

    text: str
    needed: int | str
    held: int | str | None
    wallet: str | None
    chain: str
    block: int | None
    source: str | None
    observedAt: str | None
    outcome: str
    reason: str | None
    most: int | str | None


class RivalHealth(TypedDict):
    """A rival that gave or took a role within a day: how often, and the newest times.

    `name` is null while it is unknown, and a person's name and id also for a token without the scope for members;
    `against` says whether the rival reversed our changes.
    """

    state: str
    text: str
    mend: str | None
    roleId: str
    roleName: str
    actorId: str | None
    name: str | None
    bot: bool
    took: int
    gave: int
    against: bool
    firstAt: str
    lastAt: str
    times: list[str]


class RoleEventData(TypedDict):
    """The member, the role, and the rules because of which it was given or taken; never a wallet."""

    discordId: str | None
    roleId: str | None
    ruleIds: list[int]


class RoleGivenEvent(TypedDict):
    """We gave a member a role."""

    id: str
    createdAt: str
    serverId: int
    guildId: str
    event: Literal["role.given"]
    data: RoleEventData


class RoleOrderHealth(TypedDict):
    """Whether every role of the rules can be given."""

    state: str
    text: str
    mend: str | None
    problems: list[RoleProblem]


class RoleProblem(TypedDict):
    """A role of the rules that cannot be given at present."""

    roleId: str
    roleName: str
    cause: str
    text: str
    mend: str


class RoleReplacement(TypedDict):
    """What replacing a role does, or did, to a server's rules; `members` counts those who have the old role from us.

    They get the new role first and lose the old one after that. `batch` undoes it.
    """

    oldName: str
    newName: str
    members: int
    rules: list[RuleOfRole]
    left: list[LeftRule]
    applied: bool
    batch: str | None


class RoleReplacementPayload(TypedDict):
    """The role `newRole` replaces the role `oldRole`, by their Discord IDs. Rules are changed only with `apply`."""

    oldRole: NotRequired[str | None]
    newRole: NotRequired[str | None]
    apply: NotRequired[bool]


class RoleTakenEvent(TypedDict):
    """We took a role from a member."""

    id: str
    createdAt: str
    serverId: int
    guildId: str
    event: Literal["role.taken"]
    data: RoleEventData


class RoleView(TypedDict):
    """A role of a server, and why a rule of this person could not grant it."""

    id: str
    name: str
    color: int
    assignable: bool
    reason: str | None


class RoleWhy(TypedDict):
    """One role: its rules' answers, whether the member has it and from whom, and what happens next."""

    roleId: str
    roleName: str
    rules: list[RuleWhy]
    held: bool
    grantedByUs: bool
    next: str
    leftAloneUntil: str | None


class RuleChangedEvent(TypedDict):
    """A rule was created, changed, paused, resumed or deleted."""

    id: str
    createdAt: str
    serverId: int
    guildId: str
    event: Literal["rule.changed"]
    data: RuleEventData


class RuleChanges(TypedDict):
    """Changes to a rule; fields that are left out stay as they are, also if somebody else has changed them
    meanwhile.

    The flat fields of a condition change a rule that has only one. The conditions of a combined rule are changed
    by its `expression`, which replaces all of them; flat fields that differ from its first condition are refused.
    """

    maxTokens: NotRequired[Any]
    traits: NotRequired[list[TraitPayload] | None]
    ruleName: NotRequired[str | None]
    contractAddress: NotRequired[str | None]
    blockchain: NotRequired[str | None]
    verificationType: NotRequired[str | None]
    minTokens: NotRequired[Any]
    roleId: NotRequired[str | None]
    roleColor: NotRequired[str | None]
    traitType: NotRequired[str | None]
    traitValue: NotRequired[str | None]
    tokenIds: NotRequired[list[str] | None]
    roleName: NotRequired[str | None]
    expression: NotRequired[dict[str, Any] | None]
    removal: NotRequired[RuleRemoval]
    shadow: NotRequired[bool]
    takesOver: NotRequired[bool]
    delegated: NotRequired[bool]
    state: NotRequired[str]
    min: NotRequired[str | None]
    max: NotRequired[str | None]
    function: NotRequired[str | None]
    args: NotRequired[list[Any] | None]
    path: NotRequired[str | None]
    compare: NotRequired[str | None]
    value: NotRequired[str | None]
    addresses: NotRequired[list[Any] | None]
    list: NotRequired[str | int | None]
    count: NotRequired[str | int | None]
    family: NotRequired[str | None]


class RuleEventData(TypedDict):
    """A rule, and what happened to it: `created`, `changed`, `paused`, `resumed` or `deleted`.

    The product itself pauses and resumes rules; an admin's pause is a change. An undo is posted as what it does:
    a deleted rule is `created` again, with its former id. `ruleId` is null if an undo put back several rules at
    once; `ruleIds` then has all that it was about, also those that were changed since and stay as they are.
    """

    ruleId: int | None
    ruleName: str | None
    ruleIds: list[int]
    change: str


class RuleList(TypedDict):
    """A list of addresses that a rule names: how many there are, and the API call with which admins download them."""

    list: str
    count: int
    download: str


class RuleOfRole(TypedDict):
    """A rule that is changed to give the new role; `state` is its state after that."""

    id: int
    name: str
    state: str


class RulePayload(TypedDict):
    """A new rule; its `state` is `active`, the default, or `shadow`, for which there is also the field `shadow`.

    The service reports missing and wrong fields, in the order of the form.
    """

    maxTokens: NotRequired[Any]
    traits: NotRequired[list[TraitPayload] | None]
    ruleName: NotRequired[str | None]
    contractAddress: NotRequired[str | None]
    blockchain: NotRequired[str | None]
    verificationType: NotRequired[str | None]
    minTokens: NotRequired[Any]
    roleId: NotRequired[str | None]
    roleColor: NotRequired[str | None]
    traitType: NotRequired[str | None]
    traitValue: NotRequired[str | None]
    tokenIds: NotRequired[list[str] | None]
    roleName: NotRequired[str | None]
    expression: NotRequired[dict[str, Any] | None]
    removal: NotRequired[RuleRemoval]
    shadow: NotRequired[bool]
    takesOver: NotRequired[bool]
    delegated: NotRequired[bool]
    serverId: int
    state: NotRequired[str | None]
    min: NotRequired[str | None]
    max: NotRequired[str | None]
    function: NotRequired[str | None]
    args: NotRequired[list[Any] | None]
    path: NotRequired[str | None]
    compare: NotRequired[str | None]
    value: NotRequired[str | None]
    addresses: NotRequired[list[Any] | None]
    list: NotRequired[str | int | None]
    count: NotRequired[str | int | None]
    family: NotRequired[str | None]


class RuleRemoval(TypedDict):
    """When a member loses a role that no rule gives any more: `now`, or after some `hours` of `grace`."""

    mode: NotRequired[str]
    hours: NotRequired[Any]


class RuleView(TypedDict):
    """A stored rule; `holders` counts members with its role from us, `summary` says in words what it asks for.

    `expression` is its document. `singleSources` is empty if a second source can confirm every loss. The flat
    fields repeat the first condition; `blockchain` and `contractAddress` are empty if it names none.
    """

    id: int
    serverId: int
    ruleName: str
    contractAddress: str
    blockchain: str
    verificationType: str
    minTokens: int
    maxTokens: int | None
    roleId: str
    roleName: str
    roleColor: str
    traitType: str | None
    traitValue: str | None
    tokenIds: list[str]
    expression: Any
    removal: RemovalPolicy
    shadow: bool
    state: str
    pauseReason: str | None
    takesOver: bool
    delegated: bool
    holders: int
    summary: str
    singleSources: list[SingleSource]
    addressLists: list[RuleList]
    createdAt: str


class RuleWhy(TypedDict):
    """One rule's answer for the member: `yes`, `no` or `unknown`."""

    id: int
    name: str
    state: str
    outcome: str
    requirements: list[RequirementView]


class RulesDocument(TypedDict):
    """All rules of a server as a versioned document, which another server can import."""

    format: str
    version: int
    rules: list[ExportedRule]
    addressLists: list[ExportedList]


class RunningMigration(TypedDict):
    """A migration in which both contracts count, until its date or, without one, until somebody ends it."""

    id: int
    chain: str
    contract: str
    name: str
    newChain: str
    newContract: str
    newName: str
    until: str | None
    createdAt: str
    rules: list[str]


class SeenMovePayload(TypedDict):
    """The open move as it was read: its roles in their order, its dates, and its channel."""

    roles: list[str]
    beginsAt: str
    until: str
    channelId: NotRequired[str | None]


class SeenPayload(TypedDict):
    """The removals of the role as they were shown: `trippedAt` and `total` of the call that lists them."""

    trippedAt: str
    total: int


class SentTestEvent(TypedDict):
    """An admin sent a test event."""

    id: str
    createdAt: str
    serverId: int
    guildId: str
    event: Literal["test"]
    data: NoEventData


class ServerExportAnswer(TypedDict):
    """The rules of one server, with their lists of addresses, and its members.

    `format` and `version` are those of `rules.json`, so this document can be imported too.
    """

    format: str
    version: int
    serverId: int
    exportedAt: str
    rules: list[RuleView]
    addressLists: list[ExportedList]
    members: list[ExportedMember]


class ServerView(TypedDict):
    """A server as its admins see it; `id` is Discord's, `internalId` ours."""

    id: str
    internalId: int
    name: str
    iconUrl: str | None
    botInvited: bool
    owner: bool
    verifiedMembers: int
    verificationRulesCount: int
    verificationRules: list[RuleView]


class SingleSource(TypedDict):
    """A part of a condition that only one source can answer: what that means, and which setting adds another source."""

    chain: str
    verificationType: str
    text: str
    remedy: str


class SkippedEntry(TypedDict):
    """An entry that became no rule: its label in the document, and why it became none."""

    what: str
    why: str


class StoredList(TypedDict):
    """A stored list: the digest by which conditions name it, and how many addresses it has."""

    list: str
    count: int


class SweepHealth(TypedDict):
    """The daily sweep: `members` were due when it began, `left` still wait."""

    state: str
    text: str
    mend: str | None
    startedAt: str | None
    finishedAt: str | None
    nextAt: str | None
    members: int
    left: int


class TraitPayload(TypedDict):
    """A trait that a token must have."""

    type: NotRequired[str | None]
    value: NotRequired[str | None]


class TraitTypesAnswer(TypedDict):
    """The kinds of traits."""

    traitTypes: list[str]


class TraitValuesAnswer(TypedDict):
    """The values of one kind of trait; none if they are numbers."""

    traitValues: list[str]


class Trial(TypedDict):
    """A rule's answer for an address (`yes`, `no` or `unknown`), and each requirement with its evidence.

    `address` is the one that was tried, `name` the name that led to it, if any.
    """

    outcome: str
    requirements: list[RequirementView]
    address: str
    name: str | None


class TrialPayload(PreviewPayload):
    """A rule as for a preview, but with optional name and role, and the address or name of a wallet."""

    address: NotRequired[str | None]


class TruceHealth(TypedDict):
    """A role that we neither give to nor take from some members until a time; at most 20 of `total` are named."""

    state: str
    text: str
    mend: str | None
    roleId: str
    roleName: str
    total: int
    since: str
    until: str
    members: list[LeftAlone]


class UndoView(TypedDict):
    """The result of undoing a batch, or of a preview of that, in words, and how many members get a role at once."""

    batch: str
    text: str
    members: int


class UnknownReading(TypedDict):
    """Why something could not be read, and for how many members."""

    state: str
    text: str
    mend: str | None
    reason: str
    members: int


class WalletEventData(TypedDict):
    """The member and the wallet, with its address shortened. Sent only while its owner shares it with the admins."""

    discordId: str | None
    wallet: str
    family: str
    method: str | None


class WalletProvedEvent(TypedDict):
    """A member who shares their wallets with the server's admins proved one."""

    id: str
    createdAt: str
    serverId: int
    guildId: str
    event: Literal["wallet.proved"]
    data: WalletEventData


WebhookEvent: TypeAlias = (
    BreakerTrippedEvent | RoleGivenEvent | RoleTakenEvent | RuleChangedEvent | SentTestEvent | WalletProvedEvent
)
"""What is posted to a webhook."""
