"""The calls of the API; generate.py writes this file from the OpenAPI document."""

from holdfast_client import shapes
from holdfast_client.client import Client


class Holdfast(Client):
    """The calls of one server, made with its API token. Use it as a context manager, or call `close`."""

    def activate_rules(self, body: shapes.ActivationPayload) -> shapes.ActivationAnswer:
        """Activate rules in shadow of one server, all of them or none.

        Needs the scope rules.
        """
        return self._call("POST", "/api/verification-rules/activate", body=body)

    def approve_move(self, server_id: int, body: shapes.MoveApprovalPayload | None = None) -> shapes.MoveView:
        """End the move once its time is over: rules then decide about its roles, and the breaker limits removals.

        With `seen`, the end of a move that somebody else has changed meanwhile is not approved: the answer is
        409.

        Needs the scope rules.
        """
        return self._call("POST", "/api/servers/{server_id}/move/approve", body=body, places={"server_id": server_id})

    def change_rule(self, rule_id: int, body: shapes.RuleChanges) -> shapes.RuleView:
        """Change fields of a rule, or its state: `active`, `paused` or `shadow`.

        Needs the scope rules.
        """
        return self._call("PATCH", "/api/verification-rules/{rule_id}", body=body, places={"rule_id": rule_id})

    def count_reach(self, body: shapes.PreviewPayload) -> shapes.ReachAnswer:
        """Start to count, on chain, the addresses that meet a new rule or the stored one of `id`; needs no name or
        role.

        The same conditions are counted at most once an hour.

        Needs the scope rules.
        """
        return self._call("POST", "/api/verification-rules/reach", body=body)

    def create_rule(self, body: shapes.RulePayload, *, idempotency_key: str | None = None) -> shapes.RuleView:
        """Create a rule; it takes effect at once unless it is in `shadow`.

        A repeated request with the same `Idempotency-Key` creates no second rule, and answers with the first as
        it is now.

        Needs the scope rules.
        """
        return self._call("POST", "/api/verification-rules", body=body, header={"Idempotency-Key": idempotency_key})

    def decide_removals(self, server_id: int, body: shapes.BreakerPayload) -> shapes.BreakerAnswer:
        """Approve the removals that were held back because too many would have lost a role, or dismiss them.

        Needs the scope rules.
        """
        return self._call("POST", "/api/servers/{server_id}/breaker", body=body, places={"server_id": server_id})

    def delete_rule(self, rule_id: int) -> shapes.DeletedAnswer:
        """Delete a rule; roles that members held only because of it follow its removal policy.

        Needs the scope rules.
        """
        return self._call("DELETE", "/api/verification-rules/{rule_id}", places={"rule_id": rule_id})

    def download_address_list(self, server_id: int, name: str) -> str:
        """Return the addresses of a list as CSV, for people who run the server.

        Needs the scope rules.
        """
        return self._call(
            "GET", "/api/servers/{server_id}/address-lists/{name}", places={"server_id": server_id, "name": name}
        )

    def download_events(
        self,
        server_id: int,
        *,
        kind: str | None = None,
        member: str | None = None,
        actor: str | None = None,
        role_id: str | None = None,
        rule_id: int | None = None,
        since: str | None = None,
        until: str | None = None,
    ) -> str:
        """Return the log as CSV in UTF-8, newest first, with the same filters.

        Needs the scope members.
        """
        return self._call(
            "GET",
            "/api/servers/{server_id}/events.csv",
            places={"server_id": server_id},
            query={
                "kind": kind,
                "member": member,
                "actor": actor,
                "roleId": role_id,
                "ruleId": rule_id,
                "since": since,
                "until": until,
            },
        )

    def download_members(self, server_id: int) -> str:
        """Return the server's members as CSV in UTF-8.

        Needs the scope members.
        """
        return self._call("GET", "/api/servers/{server_id}/members.csv", places={"server_id": server_id})

    def download_payouts(self, server_id: int, *, rule_id: int | None = None) -> str:
        """Return the payout addresses that members chose for this server, with holdings and block, as CSV in UTF-8.

        Needs the scope members.
        """
        return self._call(
            "GET", "/api/servers/{server_id}/payout.csv", places={"server_id": server_id}, query={"ruleId": rule_id}
        )

    def end_migration(self, server_id: int, migration_id: int) -> shapes.MigrationView:
        """Let only the new contract count from now on.

        Needs the scope rules.
        """
        return self._call(
            "POST",
            "/api/servers/{server_id}/migrations/{migration_id}/end",
            places={"server_id": server_id, "migration_id": migration_id},
        )

    def explain_member(self, server_id: int, discord_id: str) -> shapes.MemberWhy:
        """Return why the member has or lacks each role, from the rules, the ledger and the newest readings.

        Needs the scope members.
        """
        return self._call(
            "GET",
            "/api/servers/{server_id}/members/{discord_id}/why",
            places={"server_id": server_id, "discord_id": discord_id},
        )

    def export_rules(self, server_id: int) -> shapes.RulesDocument:
        """Return all rules of the server as a document to keep, or to import on another server.

        Needs the scopes read and rules.
        """
        return self._call("GET", "/api/servers/{server_id}/rules.json", places={"server_id": server_id})

    def export_server(self, server_id: int) -> shapes.ServerExportAnswer:
        """Return the server's rules, and its members with the roles that rules are about.

        Needs the scopes members, read and rules.
        """
        return self._call("GET", "/api/servers/{server_id}/export", places={"server_id": server_id})

    def find_collection(self, body: shapes.CollectionPayload) -> shapes.CollectionView:
        """Return the collection at an address or a marketplace page; the page of a token gives the token's
        collection.

        If several collections match, or the collection is on another chain, the error has `offers`: collections
        that a client can use unchanged.

        Needs the scope rules.
        """
        return self._call("POST", "/api/collection/parse", body=body)

    def follow_again(self, server_id: int, body: shapes.FollowAgainPayload) -> shapes.FollowAgainAnswer:
        """Let rules give and take a role again that was left alone because others had reversed it repeatedly.

        Needs the scope members.
        """
        return self._call(
            "POST", "/api/servers/{server_id}/health/follow-again", body=body, places={"server_id": server_id}
        )

    def get_health(self, server_id: int) -> shapes.HealthView:
        """Return bot, permissions, role order, providers, lag, last sweep, and pauses, each with its cause and
        remedy.

        Needs the scope read.
        """
        return self._call("GET", "/api/servers/{server_id}/health", places={"server_id": server_id})

    def get_move(self, server_id: int) -> shapes.MoveView:
        """Return the server's move: for each role who has arrived, who has not, and who else gives or takes it.

        Needs the scope read.
        """
        return self._call("GET", "/api/servers/{server_id}/move", places={"server_id": server_id})

    def get_protection(self, server_id: int) -> shapes.ProtectionView:
        """Return the protected members and roles.

        Needs the scope members.
        """
        return self._call("GET", "/api/servers/{server_id}/protection", places={"server_id": server_id})

    def get_reach(self, reach_id: int) -> shapes.ReachView:
        """Return how many addresses meet a rule and how many are verified in its server, or how far the count is.

        Needs the scope read.
        """
        return self._call("GET", "/api/verification-rules/reach/{reach_id}", places={"reach_id": reach_id})

    def get_rule(self, rule_id: int) -> shapes.RuleView:
        """Return one rule.

        Needs the scope read.
        """
        return self._call("GET", "/api/verification-rules/{rule_id}", places={"rule_id": rule_id})

    def import_rules(self, server_id: int, body: shapes.ImportPayload) -> shapes.ImportView:
        """Return which rule each rule of another bot or of an export becomes here, and why some cannot be imported.

        With `apply` they are created as rules in shadow, which give and take nothing until somebody activates
        them.

        Needs the scope rules.
        """
        return self._call("POST", "/api/servers/{server_id}/import", body=body, places={"server_id": server_id})

    def list_events(
        self,
        server_id: int,
        *,
        before: int | None = None,
        limit: int | None = None,
        kind: str | None = None,
        member: str | None = None,
        actor: str | None = None,
        role_id: str | None = None,
        rule_id: int | None = None,
        since: str | None = None,
        until: str | None = None,
    ) -> list[shapes.LogLine]:
        """Return the events, newest first; `before` is the id of the last line of the previous page.

        Needs the scope members.
        """
        return self._call(
            "GET",
            "/api/servers/{server_id}/events",
            places={"server_id": server_id},
            query={
                "before": before,
                "limit": limit,
                "kind": kind,
                "member": member,
                "actor": actor,
                "roleId": role_id,
                "ruleId": rule_id,
                "since": since,
                "until": until,
            },
        )

    def list_held_back_removals(self, server_id: int) -> list[shapes.HeldBackView]:
        """Return the removals that wait for an admin: members, roles, the evidence, and earlier changes.

        Needs the scopes members and read.
        """
        return self._call("GET", "/api/servers/{server_id}/breaker", places={"server_id": server_id})

    def list_members(self, server_id: int, *, query: str | None = None, page: int | None = None) -> shapes.MembersPage:
        """Return the members by name; `query` is part of a name or a whole Discord id.

        A member who joins or leaves moves the pages after their own; `members.csv` has each member once.

        Needs the scope members.
        """
        return self._call(
            "GET",
            "/api/servers/{server_id}/members",
            places={"server_id": server_id},
            query={"query": query, "page": page},
        )

    def list_migrations(self, server_id: int) -> list[shapes.RunningMigration]:
        """Return the migrations of the server in which both contracts count at present.

        Needs the scope read.
        """
        return self._call("GET", "/api/servers/{server_id}/migrations", places={"server_id": server_id})

    def list_move_members(
        self, server_id: int, role_id: str, *, standing: str | None = None, page: int | None = None
    ) -> shapes.HoldersPage:
        """Return the holders of a role of the move by standing: `right`, `wrong`, `unverified` or `unknown`.

        Needs the scope members.
        """
        return self._call(
            "GET",
            "/api/servers/{server_id}/move/members",
            places={"server_id": server_id},
            query={"roleId": role_id, "standing": standing, "page": page},
        )

    def list_roles(self, server_id: str) -> list[shapes.RoleView]:
        """Return the roles of a server that the caller runs, without @everyone.

        Needs the scope read.
        """
        return self._call("GET", "/api/discord/roles", query={"serverId": server_id})

    def list_rules(self, server_id: int) -> list[shapes.RuleView]:
        """Return the rules of a server, by its internal id.

        Needs the scope read.
        """
        return self._call("GET", "/api/verification-rules", query={"serverId": server_id})

    def list_servers(self) -> list[shapes.ServerView]:
        """Return the known servers where the caller is owner or administrator; for an API token, the token's server.

        Needs the scope read.
        """
        return self._call("GET", "/api/servers")

    def list_trait_types(self, contract: str, *, blockchain: str | None = None) -> shapes.TraitTypesAnswer:
        """Return the kinds of traits of a collection's tokens: from OpenSea, otherwise from some of the tokens.

        Needs the scope rules.
        """
        return self._call(
            "GET", "/api/collection/{contract}/traits", places={"contract": contract}, query={"blockchain": blockchain}
        )

    def list_trait_values(
        self, contract: str, trait_type: str, *, blockchain: str | None = None
    ) -> shapes.TraitValuesAnswer:
        """Return the values of one kind of trait; none for numbers, for which OpenSea has only bounds.

        Needs the scope rules.
        """
        return self._call(
            "GET",
            "/api/collection/{contract}/traits/{trait_type}",
            places={"contract": contract, "trait_type": trait_type},
            query={"blockchain": blockchain},
        )

    def migrate_contract(self, server_id: int, body: shapes.MigrationPayload) -> shapes.MigrationView:
        """Return how each rule with the old contract changes, and why some rules stay; with `apply`, change them.

        Needs the scope rules.
        """
        return self._call("POST", "/api/servers/{server_id}/migrations", body=body, places={"server_id": server_id})

    def preview_migration(self, server_id: int, body: shapes.MigrationPayload) -> shapes.MovePreview:
        """Return what a migration would do to members; changes nothing.

        Needs the scopes members and rules.
        """
        return self._call(
            "POST", "/api/servers/{server_id}/migrations/preview", body=body, places={"server_id": server_id}
        )

    def preview_migration_end(self, server_id: int, migration_id: int) -> shapes.MovePreview:
        """Return what would happen to members if only the new contract counted; changes nothing.

        Needs the scopes members and rules.
        """
        return self._call(
            "POST",
            "/api/servers/{server_id}/migrations/{migration_id}/preview",
            places={"server_id": server_id, "migration_id": migration_id},
        )

    def preview_move_end(self, server_id: int) -> shapes.MovePreview:
        """Return what the end of the move would do to members; changes nothing.

        Needs the scopes members and rules.
        """
        return self._call("POST", "/api/servers/{server_id}/move/preview", places={"server_id": server_id})

    def preview_role_replacement(self, server_id: int, body: shapes.RoleReplacementPayload) -> shapes.MovePreview:
        """Return what replacing a role would do to members; changes nothing.

        Needs the scopes members and rules.
        """
        return self._call(
            "POST", "/api/servers/{server_id}/migrations/role/preview", body=body, places={"server_id": server_id}
        )

    def preview_rule(self, body: shapes.PreviewPayload) -> shapes.PreviewAnswer:
        """Return what creating a rule, or changing or deleting one (by its `id`), would do to members; stores no
        rule.

        Needs the scopes members and rules.
        """
        return self._call("POST", "/api/verification-rules/preview", body=body)

    def preview_undo(self, server_id: int, batch: str) -> shapes.UndoView:
        """Return what undoing the batch would do; nothing is changed.

        Needs the scopes members and rules.
        """
        return self._call(
            "GET", "/api/servers/{server_id}/events/{batch}/undo", places={"server_id": server_id, "batch": batch}
        )

    def protect_member(self, server_id: int, discord_id: str, body: shapes.ProtectionPayload) -> shapes.Done:
        """Protect a member from all removals, or end the protection.

        Needs the scope members.
        """
        return self._call(
            "PUT",
            "/api/servers/{server_id}/protection/members/{discord_id}",
            body=body,
            places={"server_id": server_id, "discord_id": discord_id},
        )

    def protect_role(self, server_id: int, role_id: str, body: shapes.ProtectionPayload) -> shapes.Done:
        """Protect a role from all removals, or end the protection.

        Needs the scope rules.
        """
        return self._call(
            "PUT",
            "/api/servers/{server_id}/protection/roles/{role_id}",
            body=body,
            places={"server_id": server_id, "role_id": role_id},
        )

    def recheck_everybody(self, server_id: int) -> shapes.AcceptedAnswer:
        """Queue every member to be checked again soon.

        Needs the scope rules.
        """
        return self._call("POST", "/api/servers/{server_id}/recheck", places={"server_id": server_id})

    def recheck_member(self, server_id: int, discord_id: str) -> shapes.AcceptedAnswer:
        """Queue one member to be checked again soon.

        Needs the scope members.
        """
        return self._call(
            "POST",
            "/api/servers/{server_id}/members/{discord_id}/recheck",
            places={"server_id": server_id, "discord_id": discord_id},
        )

    def replace_role(self, server_id: int, body: shapes.RoleReplacementPayload) -> shapes.RoleReplacement:
        """Return which rules would give the new role in place of the old one; with `apply`, change them.

        Needs the scope rules.
        """
        return self._call(
            "POST", "/api/servers/{server_id}/migrations/role", body=body, places={"server_id": server_id}
        )

    def set_move(self, server_id: int, body: shapes.MovePayload) -> shapes.MoveView:
        """Begin a move, or change the running one. Nobody loses a role of the move until an admin approves its end.

        With `seen`, a move that somebody else has begun or changed meanwhile is not replaced: the answer is 409.

        Needs the scope rules.
        """
        return self._call("PUT", "/api/servers/{server_id}/move", body=body, places={"server_id": server_id})

    def try_rule(self, body: shapes.TrialPayload) -> shapes.Trial:
        """Return what a new rule, or the stored one of `id`, says about a member with this wallet alone; stores
        nothing.

        Needs the scope rules.
        """
        return self._call("POST", "/api/verification-rules/try", body=body)

    def try_view_call(self, body: shapes.CallTrialPayload) -> shapes.CallResult:
        """Return what a contract's view function answers about a wallet now, or why it does not; stores nothing.

        Needs the scope rules.
        """
        return self._call("POST", "/api/verification-rules/try-call", body=body)

    def undo_batch(self, server_id: int, batch: str) -> shapes.UndoView:
        """Undo one batch: a rule's deletion, change or pause, or removals made together.

        Needs the scopes members and rules.
        """
        return self._call(
            "POST", "/api/servers/{server_id}/events/{batch}/undo", places={"server_id": server_id, "batch": batch}
        )

    def undo_move(self, server_id: int) -> shapes.MoveUndone:
        """Cancel the move, or undo its approved end: roles that it took are given back, and everybody keeps its
        roles.

        Needs the scope rules.
        """
        return self._call("DELETE", "/api/servers/{server_id}/move", places={"server_id": server_id})

    def upload_address_list(self, server_id: int, csv: str) -> shapes.StoredList:
        """Store a list of addresses for a condition that names it: one or more on each line, or a CSV file.

        Mistakes and repetitions are reported with their lines. A list that no rule uses is deleted after a day.

        Needs the scope rules.
        """
        return self._call("POST", "/api/servers/{server_id}/address-lists", csv=csv, places={"server_id": server_id})
