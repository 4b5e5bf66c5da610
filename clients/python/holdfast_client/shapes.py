"""The shapes of JSON that the API takes and answers with; generate.py writes this file from the OpenAPI document."""

from __future__ import annotations

from typing import Any, Literal, NotRequired, TypeAlias, TypedDict


class AcceptedAnswer(TypedDict):
    """The work is queued and will be done soon."""

    message: str


class ActivationAnswer(TypedDict):
    """How many rules became active; one that had left the shadow stays as it was."""

    activated: int


class ActivationPayload(TypedDict):
    """Rules in shadow of one server, by their ids."""

    serverId: int
    ruleIds: list[int]


class AlertsHealth(TypedDict):
    """Whether alerts reach the admins' log channel."""

    state: str
    text: str
    mend: NotRequired[str | None]
    channelId: str | None
    error: str | None


class BotHealth(TypedDict):
    """Whether the bot is in the server and connected to Discord."""

    state: str
    text: str
    mend: NotRequired[str | None]
    inServer: bool
    connected: bool
    heardAt: str | None
    since: str | None


class BreakerAnswer(TypedDict):
    """The number of roles whose removals continue now."""

    success: NotRequired[bool]
    roles: int


class BreakerEventData(TypedDict):
    """The role whose removals wait for an admin: how many of its holders would have lost it."""

    roleId: str | None
    wouldLose: int | None
    holders: int | None


class BreakerHealth(TypedDict):
    """Removals of a role that were stopped because too many members would have lost it at once."""

    state: str
    text: str
    mend: NotRequired[str | None]
    roleId: str
    roleName: str
    wouldLose: int
    holders: int
    since: str


class BreakerPayload(TypedDict):
    """Whether held-back removals continue, or everybody keeps the role; for one role or all."""

    approve: bool
    roleId: NotRequired[str | None]


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
    """A collection on one chain; `slug` is OpenSea's, or None while unknown."""

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
    """The deletion of a rule; the roles of `members` are settled now."""

    success: NotRequired[bool]
    members: int


class Done(TypedDict):
    """The call has succeeded."""

    success: NotRequired[bool]


class ExportedList(TypedDict):
    """A list of addresses that rules name, whole."""

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
    """A role that rules are about and that the member has."""

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
    """For how many members the rules decide about the role again."""

    members: int


class FollowAgainPayload(TypedDict):
    """The role, and one member if it is not about all."""

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

    `wouldLose` of `holders` tripped the breaker: roles taken within the day, being taken, and about to be.
    `losers` are
    those who wait now, `total` of them; `cause` is the latest change before, in words, or empty.
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

    `named` is false where so few could be right that names would say which wallet is whose.
    """

    members: list[HolderName]
    page: int
    pageSize: int
    total: int
    named: bool


class ImportPayload(TypedDict):
    """A document of rules and where it comes from: `collabland`, `guild` or `holdfast`.

    The document is JSON, or a text of it: at most 1 MiB and 200 rules. With `apply` its rules are made, in
    shadow;
    `only` chooses some of them by their `number`.
    """

    source: str
    document: Any
    apply: NotRequired[bool]
    only: NotRequired[list[int] | None]


class ImportView(TypedDict):
    """What a document becomes in a server. `warning` says if the server has no room for all of it, or is empty."""

    rules: list[ImportedRule]
    skipped: list[SkippedEntry]
    warning: str
    applied: bool


class ImportedRule(TypedDict):
    """What an entry becomes: the `payload` of a new rule, in words, and what to know about it.

    `number` counts the rules of the document. `id` is the rule's, once it is made.
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
    id: NotRequired[int | None]


class LagHealth(TypedDict):
    """How far behind a chain its follower is.

    `kind` is what it follows: `contracts`, members' `wallets` or `coins`; empty for a chain that is left to
    sweeps.
    `block` was read last, `behind` counts the newer ones; `seconds` have passed since the last poll.
    """

    state: str
    text: str
    mend: NotRequired[str | None]
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
    """A rule that names the old contract and stays as it is, and why."""

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
    """A rule that is carried over: what it asks for now and then, in words, and what to know about it."""

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
    """This contract became that one, on the same chain unless `newChain` names another.

    `sameIds` says that each token has the same ID there. With `both`, each contract counts, `until` a date or,
    without
    one, until somebody ends that. With `apply` the rules are changed; without it nothing is.
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
    """What a migration does to the rules of a server, or did; `batch` undoes it, `id` is that of one with both."""

    rules: list[MigratedRule]
    left: list[LeftRule]
    applied: bool
    batch: NotRequired[str | None]
    id: NotRequired[int | None]


class MissingPermission(TypedDict):
    """A permission that the bot lacks in the whole server, and its purpose."""

    name: str
    text: str
    mend: str


class MovePayload(TypedDict):
    """A move: the roles that are handed over, until when, from when (now by default), and where to announce it.

    A date without a time is meant in UTC: `until` to the end of that day, `beginsAt` from its start.
    """

    until: str
    roles: list[str]
    beginsAt: NotRequired[str | None]
    channelId: NotRequired[str | None]


class MovePreview(TypedDict):
    """How many would gain, keep or lose a role at the end, and their names; `looked` of `concerned` were read."""

    gain: int
    keep: int
    lose: int
    unknown: int
    members: list[MemberImpact]
    looked: int
    concerned: int


class MoveRival(TypedDict):
    """Another bot or person who moved the role; `name` is null where the server's audit log does not say it."""

    name: str | None
    lastAt: str


class MoveUndone(TypedDict):
    """What the end of a move without removals did, in words; `members` get a role back at once."""

    text: str
    members: int


class MoveView(TypedDict):
    """A move: `planned`, `running`, `over` (it waits for an approval) or `approved`.

    Until the approval nobody loses a role of it that others gave them, or for lack of a wallet. `days` are the
    stored
    counts of all roles together. `messagesUpdated` is false if Discord did not let us change the panel or the
    announcement.
    """

    state: str
    beginsAt: str
    until: str
    channelId: str | None
    approvedAt: str | None
    countedAt: str
    roles: list[MovingRole]
    days: list[CoverageDay]
    messagesUpdated: NotRequired[bool]


class MovingRole(TypedDict):
    """A handed-over role: its holders by standing, and who else moves it.

    `right`: a rule says yes to their wallets. `wrong`: all rules say no. `unverified`: they have no wallet here.
    `unknown`: no active rule, or their wallets could not be read. `taken` counts removals since the approval.
    `decided` is whether an active rule gives the role: without one, every holder with a wallet is unknown.
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
    mend: NotRequired[str | None]
    known: bool
    missing: list[MissingPermission]


class PreviewAnswer(TypedDict):
    """How many members would gain, keep or lose the role or are unknown, and their names.

    `looked` of `concerned` members were read: in a large server those who have the role and a sample of the rest.
    """

    gain: int
    keep: int
    lose: int
    unknown: int
    members: list[MemberImpact]
    looked: int
    concerned: int
    singleSources: list[SingleSource]


class PreviewPayload(TypedDict):
    """A proposal: a new rule, or with `id` a change of that rule, its new `state`, or its deletion.

    `activate` are ids of rules in shadow of the server `serverId`: what they would do if all of them were active.
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
    serverId: NotRequired[int]
    expression: NotRequired[dict[str, Any] | None]
    removal: NotRequired[RuleRemoval]
    shadow: NotRequired[bool]
    takesOver: NotRequired[bool]
    delegated: NotRequired[bool]
    id: NotRequired[int | None]
    delete: NotRequired[bool]
    state: NotRequired[str]
    activate: NotRequired[list[int] | None]


class ProtectedMember(TypedDict):
    """A member who keeps every role that we gave them; for one who left, the name is the id."""

    discordId: str
    name: str


class ProtectedRole(TypedDict):
    """A role that we take from nobody; `by` and `since` say who protected it and when, while the log has it."""

    roleId: str
    roleName: str
    by: str | None
    since: str | None


class ProtectionPayload(TypedDict):
    """Whether it is protected from now on."""

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
    mend: NotRequired[str | None]
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
    mend: NotRequired[str | None]
    due: int
    oldestAt: str | None
    failing: int
    writes: int
    writesFailing: int


class QuotaHealth(TypedDict):
    """The reads of a marketplace's key: `left` of `reads` in its window, which ends at `backAt`.

    The shares overlap: what is kept for no use counts in each of them.
    """

    state: str
    text: str
    mend: NotRequired[str | None]
    provider: str
    name: str
    reads: int
    left: int
    backAt: str | None
    shares: list[QuotaShare]


class QuotaShare(TypedDict):
    """What one use of a marketplace's key may read now; `backAt` is when it may read again if that is nothing."""

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

    `holders` and `verified_here` are null until it is done. `reason` says why it failed, or what nobody confirms.
    """

    id: int
    state: str
    progress: float
    holders: int | None
    verifiedHere: int | None
    chains: list[ReachOnChain]
    reason: str | None


class RemovalPolicy(TypedDict):
    """When a role is taken that no rule gives any more: `now`, or after some hours of `grace`."""

    mode: str
    hours: int


class RequirementView(TypedDict):
    """One requirement and the last known holdings; `wallet` only for those who may see it."""

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
    """Somebody else who gave or took a role within a day: how often, and the newest times.

    `name` is null while it is unknown; `against` says whether that reversed what we did.
    """

    state: str
    text: str
    mend: NotRequired[str | None]
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
    mend: NotRequired[str | None]
    problems: list[RoleProblem]


class RoleProblem(TypedDict):
    """A role of the rules that cannot be given at present."""

    roleId: str
    roleName: str
    cause: str
    text: str
    mend: str


class RoleReplacement(TypedDict):
    """What replacing a role does to the rules of a server, or did; `members` have the old role from us.

    They get the new role first and lose the old one after that. `batch` undoes it.
    """

    oldName: str
    newName: str
    members: int
    rules: list[RuleOfRole]
    left: list[LeftRule]
    applied: bool
    batch: NotRequired[str | None]


class RoleReplacementPayload(TypedDict):
    """The role `oldRole` became the role `newRole`, by their Discord IDs. With `apply` the rules are changed."""

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
    leftAloneUntil: NotRequired[str | None]


class RuleChangedEvent(TypedDict):
    """A rule was created, changed, paused, resumed or deleted."""

    id: str
    createdAt: str
    serverId: int
    guildId: str
    event: Literal["rule.changed"]
    data: RuleEventData


class RuleChanges(TypedDict):
    """Changes of a rule; absent fields stay as they are."""

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


class RuleEventData(TypedDict):
    """Which rule, and what happened to it: `created`, `changed`, `paused`, `resumed` or `deleted`."""

    ruleId: int | None
    ruleName: str | None
    change: str


class RuleList(TypedDict):
    """A list of addresses that a rule names: how many there are, and the call that gives them out to admins."""

    list: str
    count: int
    download: str


class RuleOfRole(TypedDict):
    """A rule that gives the new role from then on; `state` is the one that it has then."""

    id: int
    name: str
    state: str


class RulePayload(TypedDict):
    """A new rule. The service reports missing and wrong fields, in the order of the form."""

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
    serverId: int
    expression: NotRequired[dict[str, Any] | None]
    removal: NotRequired[RuleRemoval]
    shadow: NotRequired[bool]
    takesOver: NotRequired[bool]
    delegated: NotRequired[bool]


class RuleRemoval(TypedDict):
    """When a role is taken that no rule gives any more: `now`, or after some hours of `grace`."""

    mode: NotRequired[str]
    hours: NotRequired[Any]


class RuleView(TypedDict):
    """A stored rule; `holders` have its role from us, `summary` says in words what it asks for.

    `expression` is its document. `singleSources` is empty where a second source can confirm every loss. The flat
    fields
    repeat the first condition; `blockchain` and `contractAddress` are empty where it names none.
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

    `format` and `version` are those of `rules.json`: an import takes this document too.
    """

    format: NotRequired[str]
    version: NotRequired[int]
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
    """What a condition asks for that one source alone can tell: what that means, and which setting adds another."""

    chain: str
    verificationType: str
    text: str
    remedy: str


class SkippedEntry(TypedDict):
    """An entry that became no rule: what it is in the document, and why."""

    what: str
    why: str


class StoredList(TypedDict):
    """A stored list: what a condition names it by, and how many addresses it has."""

    list: str
    count: int


class SweepHealth(TypedDict):
    """The daily sweep: `members` were due when it began, `left` still wait."""

    state: str
    text: str
    mend: NotRequired[str | None]
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


class TrialPayload(TypedDict):
    """A rule as for a preview, without a required name and role, and the address or name of a wallet."""

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
    serverId: NotRequired[int]
    expression: NotRequired[dict[str, Any] | None]
    removal: NotRequired[RuleRemoval]
    shadow: NotRequired[bool]
    takesOver: NotRequired[bool]
    delegated: NotRequired[bool]
    id: NotRequired[int | None]
    delete: NotRequired[bool]
    state: NotRequired[str]
    activate: NotRequired[list[int] | None]
    address: NotRequired[str | None]


class TruceHealth(TypedDict):
    """A role that we neither give to nor take from some members until a time; at most 20 of `total` are named."""

    state: str
    text: str
    mend: NotRequired[str | None]
    roleId: str
    roleName: str
    total: int
    since: str
    until: str
    members: list[LeftAlone]


class UndoView(TypedDict):
    """What undoing a batch does, or did, in words, and how many members get a role at once."""

    batch: str
    text: str
    members: int


class UnknownReading(TypedDict):
    """Why something could not be read, and for how many members."""

    state: str
    text: str
    mend: NotRequired[str | None]
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
