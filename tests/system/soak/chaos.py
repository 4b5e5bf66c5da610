"""The schedule: the next event and its time, drawn from a seed."""

import asyncio
import signal
import time
from collections import Counter
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from random import Random

from tests.support.distant_node import hang
from tests.system.soak.expected_roles import SoakRule
from tests.system.soak.hostile_guild import HostileTenant
from tests.system.soak.machine import PROGRAMS, Machine
from tests.system.soak.rules import EDITED, EDITED_IN, drawn, has_list, listed, with_list
from tests.system.soak.visitor import Visitor
from tests.system.soak.world import COINS, ELSEWHERE, STAKING, STANDARDS, World, database_answers, family

EVM = ("base", "ethereum", "polygon")
NODES = tuple(f"{front}:{chain}" for chain in EVM for front in ("rpc", "rpc2"))
NODE_FAULTS = ("down", "slow", "429", "500", "empty", "zero", "stale", "malformed")
FAULTS = {
    **dict.fromkeys((*NODES, "solana"), NODE_FAULTS),
    "discord": ("down", "429", "500", "empty", "malformed"),
    "gateway": ("down", "429", "500", "malformed"),
    "opensea": ("down", "429", "500", "empty", "malformed"),
    "metadata": ("down", "slow", "429", "500", "malformed"),
}
SLOW_WRITES = "slow"
"""A Discord that carries out requests long after their callers gave up; used only in runs with enough time."""
LATE_SECONDS = 30.0


@dataclass(frozen=True)
class Pace:
    """The pace of the run: the least number of deeds and seconds, the longest pause between deeds, a fault's length."""

    seconds: float
    members: int
    deeds: int = 0
    pause: float = 0.5
    fault: float = 15.0
    frozen: float = 10.0
    late_writes: bool = False


PAUSED = ("Holder", "Whale")
"""The roles whose rules admins sometimes pause."""


class Chaos:
    """One run of the schedule over a world and a machine."""

    def __init__(
        self,
        world: World,
        machine: Machine,
        visitor: Visitor,
        tenant: HostileTenant,
        random: Random,
        pace: Pace,
        say: Callable[[str], None],
    ) -> None:
        self.tenant = tenant
        self.world, self.machine, self.random, self.pace, self.say = world, machine, random, pace, say
        self.visitor = visitor
        self.done, self.killed = Counter[str](), Counter[str]()
        self.slow, self.wrong = list[tuple[float, float]](), list[str]()
        self.down: dict[str, float] = {}
        deeds: list[tuple[Callable[[], Awaitable[None]], float]] = [
            (self.trade, 10), (self.edit, 1.5), (self.pause_or_resume, 1), (self.come_or_go, 1.5), (self.wallet, 1),
            (self.fault, 4), (self.gateway, 1), (self.reorg, 1), (self.kill, 1.5), (self.freeze, 0.5),
            (self.database, 0.4), (self.silence, 0.4), (self.hang, 0.5), (self.harm, 1), (self.approve, 0.5),
            (self.visit, 1),
        ]  # fmt: skip
        self.deeds, self.weights = zip(*deeds, strict=True)

    async def run(self) -> list[str]:
        """Run until the time is over, then heal everything. Return the processes that ended unasked.

        First each deed is done once and each process killed once, in any order; afterwards they are drawn at random.
        """
        loop = asyncio.get_running_loop()
        ends = loop.time() + self.pace.seconds
        first = [*self.deeds, *[self.kill] * (len(PROGRAMS) - 1)]
        self.random.shuffle(first)
        while first or loop.time() < ends or self.done.total() < self.pace.deeds:
            deed = first.pop() if first else self.random.choices(self.deeds, self.weights)[0]
            self.done[deed.__name__] += 1
            await deed()
            self.wrong += self.machine.ended()
            for name, back in list(self.down.items()):
                if loop.time() >= back:
                    self.machine.start(name)
                    del self.down[name]
            await asyncio.sleep(self.random.random() * self.pace.pause)
        await self.heal()
        return self.wrong

    async def heal(self) -> None:
        """End every fault and every pause of a rule."""
        self.say("everything is healed")
        await self.world.control.delete("/control/faults")
        self.machine.start_all()
        if self.slow:
            # Meanwhile the slow Discord carries out its outstanding requests.
            await asyncio.sleep(LATE_SECONDS)
        for soak_rule in self.world.soak_rules:
            if soak_rule.paused:
                assert await self.world.change(soak_rule, {"state": "active"}), "nothing stands against resuming"

    # Events on chains.

    async def trade(self) -> None:
        """Let a person buy, sell or burn a token, get or spend coins, or stake; half of the people never do."""
        kinds = (self._trade_token, self._trade_coins, self._stake)
        (trade,) = self.random.choices(kinds, (5, 3, 2))
        await trade(self.random.choice(sorted(self.world.people)[::2]))

    async def _trade_coins(self, who: str) -> None:
        world = self.world
        chain = self.random.choice(sorted(COINS))
        address, away = world.address(who, chain), ELSEWHERE[family(chain)]
        has = world.holdings.amount(chain, world.coins[chain], address)
        if has and self.random.random() < 0.5:
            spent = has if self.random.random() < 0.3 else self.random.randint(1, has)
            await world.spend(chain, address, None if self.random.random() < 0.2 else away, spent)
        else:
            await world.pay(chain, address)

    async def _stake(self, who: str) -> None:
        world = self.world
        chain = self.random.choice(sorted(STAKING))
        address = world.address(who, chain)
        own = sorted(at for at, staker in world.holdings.stakes.items() if staker == address and at[0] == chain)
        if own and self.random.random() < 0.5:
            await world.unstake(self.random.choice(own))
        else:
            await world.stake(chain, address)

    async def _trade_token(self, who: str) -> None:
        world = self.world
        chain = self.random.choice(sorted(STANDARDS))
        address = world.address(who, chain)
        own = sorted(at for at, owner in world.holdings.owners.items() if owner == address and at[0] == chain)
        away = ELSEWHERE[family(chain)]
        forsale = sorted(at for at, owner in world.holdings.owners.items() if owner == away and at[0] == chain)
        if own and self.random.random() < 0.5:
            at = self.random.choice(own)
            if self.random.random() < 0.2:
                await world.burn(at)
            else:
                await world.move(at, away)
        elif forsale and self.random.random() < 0.6:
            await world.move(self.random.choice(forsale), address)
        else:
            await world.mint(chain, address)

    async def reorg(self) -> None:
        """Replace some blocks of a chain."""
        chain, depth = self.random.choice(EVM), self.random.randint(1, 12)
        self.say(f"{chain} loses {depth} blocks")
        await self.world.reorganise(chain, depth)

    # Events in the guild.

    async def come_or_go(self) -> None:
        """Let a member leave, or come back."""
        world = self.world
        away = sorted(set(world.people) - world.present)
        if away and self.random.random() < 0.6:
            await world.join(self.random.choice(away))
        else:
            await world.leave(self.random.choice(sorted(world.present)))

    async def wallet(self) -> None:
        """Let a person prove their wallets, or remove them."""
        world = self.world
        without = sorted(set(world.people) - set(world.proved))
        if without and self.random.random() < 0.7:
            await world.prove(self.random.choice(without))
        else:
            await world.disown(self.random.choice(sorted(world.proved)))

    async def edit(self) -> None:
        """Change a rule's condition or list, delete a rule, or create one."""
        world = self.world
        edited = {world.guilds[number].roles[EDITED] for number in EDITED_IN}
        there = [soak_rule for soak_rule in world.soak_rules if soak_rule.role in edited]
        if self.random.random() < 0.3:
            soak_rule = self.random.choice([soak_rule for soak_rule in world.soak_rules if has_list(soak_rule)])
            tree = with_list(soak_rule.tree, listed(world, self.random))
            self.say(f"a list is changed: {await world.change(soak_rule, {'expression': tree})}")
            return
        tree = drawn(world, self.random)
        if len(there) < len(edited):
            (role, *_) = sorted(edited - {soak_rule.role for soak_rule in there})
            self.say(f"a rule is made: {await world.make(SoakRule(role, tree))}")
        elif self.random.random() < 0.4:
            self.say(f"a rule is deleted: {await world.delete(self.random.choice(there))}")
        else:
            self.say(f"a rule is changed: {await world.change(self.random.choice(there), {'expression': tree})}")

    async def pause_or_resume(self) -> None:
        """Pause a rule as an admin, or resume it."""
        world = self.world
        resting = [soak_rule for soak_rule in world.soak_rules if soak_rule.paused]
        if resting and self.random.random() < 0.6:
            self.say(f"a rule is resumed: {await world.change(self.random.choice(resting), {'state': 'active'})}")
        else:
            roles = {guild.roles[name] for guild in world.guilds for name in PAUSED}
            soak_rule = self.random.choice([soak_rule for soak_rule in world.soak_rules if soak_rule.role in roles])
            self.say(f"a rule is paused: {await world.change(soak_rule, {'state': 'paused'})}")

    async def approve(self) -> None:
        """Approve the removals that the breaker holds back, as an admin."""
        await self.world.approve()

    async def visit(self) -> None:
        """Visit the web as the admin. It may be away, but it never says that a signed-in person is not signed in."""
        self.wrong += await self.visitor.look(self.world.guilds[0].server_id)

    # Faults.

    async def fault(self) -> None:
        """Give a provider a fault for a while."""
        target = self.random.choice(sorted(FAULTS))
        kinds = FAULTS[target] + ((SLOW_WRITES,) if target == "discord" and self.pace.late_writes else ())
        kind, seconds = self.random.choice(kinds), self.random.uniform(1, self.pace.fault)
        if (target, kind) == ("discord", SLOW_WRITES):
            self.slow.append((time.time(), time.time() + seconds + 1))
        self.say(f"{target} is {kind} for {seconds:.1f} s")
        await self.world.call("faults", target=target, kind=kind, seconds=seconds)

    async def gateway(self) -> None:
        """Break the gateway's connection, or send an unreadable event over it."""
        action = self.random.choice(["drop", "malformed", "pause"])
        self.say(f"gateway: {action}")
        await self.world.call("gateway", action=action, seconds=self.random.uniform(1, 5))

    async def kill(self) -> None:
        """Kill a process, or ask it to end, and start it again after a while."""
        fewest = min(self.killed[name] for name in PROGRAMS)
        name = self.random.choice([name for name in PROGRAMS if self.killed[name] == fewest])
        self.killed[name] += 1
        how = self.random.choice([signal.SIGKILL, signal.SIGKILL, signal.SIGTERM])
        self.say(f"{name} gets {how.name}")
        await asyncio.to_thread(self.machine.end, name, how)
        self.down[name] = asyncio.get_running_loop().time() + self.random.uniform(0, 4)

    async def harm(self) -> None:
        """Fill a block with logs, as the hostile guild."""
        await self.tenant.harm()

    async def hang(self) -> None:
        """Let a node accept requests without answering for a while."""
        name, seconds = self.random.choice(sorted(self.machine.nodes)), self.random.uniform(1, self.pace.fault)
        self.say(f"{name} swallows what it is asked for {seconds:.1f} s")
        url = self.random.choice(self.machine.nodes[name].split())
        await asyncio.to_thread(hang, url, seconds)

    async def silence(self) -> None:
        """Drop the database's open connections silently; new ones work."""
        self.say("the database falls silent")
        self.machine.way.fall_silent()

    async def freeze(self) -> None:
        """Freeze a process for a while, then let it continue."""
        name, seconds = self.random.choice(sorted(PROGRAMS)), self.random.uniform(0.5, self.pace.frozen)
        self.say(f"{name} stands still for {seconds:.1f} s")
        self.machine.end(name, signal.SIGSTOP)
        try:
            await asyncio.sleep(seconds)
        finally:
            self.machine.end(name, signal.SIGCONT)

    async def database(self) -> None:
        """Restart the database."""
        self.say("the database is restarted")
        await asyncio.to_thread(self.machine.restart_database, self.random)
        await database_answers()
