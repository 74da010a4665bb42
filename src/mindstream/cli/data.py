"""`mindstream data`: copy all data, retention, export of a person, deletion of a tenant, audit."""

from __future__ import annotations

import asyncio
import sys
from contextlib import AsyncExitStack
from pathlib import Path
from typing import Annotated

from mindstream.cli.shell.flags import MAX_ROWS, AsJson, Yes, command, flag, group, split_names, switch, word
from mindstream.cli.shell.output import confirm_name, print_json, print_table, say, tell
from mindstream.clock import DAY_S, SystemClock, format_iso
from mindstream.errors import InputError
from mindstream.identifiers import checked_tenant
from mindstream.location import Location
from mindstream.log.audit import Deed, machine_user
from mindstream.log.retention import Rule
from mindstream.memory.opening import copy_data, open_store
from mindstream.models.embedders.embedder import embedder
from mindstream.server.tokens import Tokens
from mindstream.service.operations.forks import ForkedTowns
from mindstream.service.operations.operation import LOCAL, tenant_key_of
from mindstream.service.privacy import erase, person, retention
from mindstream.service.privacy.audit import note
from mindstream.settings import Settings
from mindstream.text.words import count_of

app = group("Copy all data, set retention, export a person's data, delete a tenant, show the audit.")


@command(app, "", "mindstream data copy ./data postgresql://mind@localhost:5432/mind")
def copy(
    source: Annotated[str, word("FROM", "The data to copy: a data folder, or postgresql://user@host:port/db.")],
    target: Annotated[
        str, word("TO", "The target: a PostgreSQL URL if FROM is a folder, else a folder; it must be empty.")
    ],
    json: AsJson = False,
) -> None:
    """Copy all rows of a data folder into a PostgreSQL database, or back.

    All rows, of all users and tenants, keep their numbers. Row counts and checksums of both sides are compared. Either
    all rows are written, or none. The source is not changed; other files of the folder are not copied.
    """
    copied = copy_data(source, target)
    if json:
        print_json(*(each._asdict() for each in copied))
        return
    print_table(("table", "rows", "sum"), [(each.table, str(each.rows), f"{each.sum:x}") for each in copied])
    say("\ncopied; both sides are equal")


Tenant = Annotated[str, flag("NAME", "The tenant [none: the users of this machine].")]
DAYS = "Maximum age in days or weeks, such as 90d or 12w; older data is erased."
KINDS = "Erase only records of these kinds [all records, and the texts of the log]."


@command(
    app,
    "data embedder",
    "mindstream data retain --after 90d",
    "mindstream data retain --tenant acme --after 90d",
    "mindstream data retain --after 30d --kinds observation,chat",
    "mindstream data retain --dry-run",
    "mindstream data retain --now --tenant acme",
)
async def retain(
    settings: Settings,
    after: Annotated[str, flag("SPAN", DAYS)] = "",
    kinds: Annotated[str, flag("A,B,…", KINDS)] = "",
    tenant: Tenant = "",
    never: Annotated[
        bool, switch("--never", "Remove the rule: keep everything until it is erased on request.")
    ] = False,
    now: Annotated[bool, switch("--now", "Apply the rule now; a server does so once a day.")] = False,
    dry_run: Annotated[bool, switch("--dry-run", "Only show what would be erased now.")] = False,
    json: AsJson = False,
) -> None:
    """Set how long a tenant's texts are kept; without --after, show the rule.

    Texts that are older than --after are permanently erased, whatever their strength in memory. Records that are
    derived only from erased texts are erased, too. A server applies each rule once a day, in one process. Pools, towns
    and documents keep their data, and so does the log of an unfinished life.
    """
    clock, tenant = SystemClock(), tenant_key_of(tenant)
    async with open_store(settings.data, tenant) as store:
        place = retention.TenantData(store, embedder(settings.embedder), clock, settings.data.beside)
        rule = next(iter(await retention.rules_of(store, tenant)), None)
        if never:
            await retention.drop_rule(store, tenant)
            await note(store, "retention_set", {"days": "never"}, tenant=tenant)
            tell(json, {"tenant": tenant, "days": None}, "everything is kept until it is erased on request")
            return
        if after:
            named = split_names([kinds]) or ()
            rule = Rule(tenant, _span_s(after), named)
            if not dry_run:
                await retention.set_rule(store, rule)
                counts = {"days": f"{rule.after_s / DAY_S:g}", "kinds": " ".join(named) or "all"}
                await note(store, "retention_set", counts, tenant=tenant)
        if rule is None:
            tell(json, {"tenant": tenant, "days": None}, "there is no rule: everything is kept; --after 90d sets one")
            return
        row = {"tenant": tenant, "days": rule.after_s / DAY_S, "kinds": [*rule.kinds], "applied": rule.applied}
        if not (now or dry_run):
            tell(json, row, retention.describe(rule))
            return
        expired = await (retention.find_expired if dry_run else retention.erase_expired)(place, rule)
        if now and not dry_run:
            await note(store, "retention_applied", expired.counts(), tenant=tenant)
    what = (
        f"{count_of(expired.records + expired.drawn, 'record')}, texts of {count_of(expired.rows, 'row of the log')},"
        f" of {count_of(expired.users, 'user')}"
    )
    tell(json, row | expired.counts(), f"{what} {'would be erased' if dry_run else 'are permanently erased'}")


def _span_s(text: str) -> float:
    """Return in seconds a span of days or weeks, written as `90d` or `12w`; raise InputError for another form."""
    number, unit = text[:-1], text[-1:]
    if unit not in ("d", "w") or not number.isascii() or not number.isdigit() or len(number) > 6:
        raise InputError(f"--after takes days or weeks, such as 90d or 12w (at most six digits), not {text!r}")
    return int(number) * DAY_S * (7 if unit == "w" else 1)


@command(app, "data", "mindstream data export-person ann.zip --user ann", name="export-person")
async def export_person(
    settings: Settings,
    file: Annotated[Path, word("FILE", "The archive to write; it must not exist.")],
    user: Annotated[str, flag("NAME", "The user whose data is exported; there is no default.")],
    tenant: Tenant = "",
    also: Annotated[
        list[str] | None, flag("DIR", "Another data folder to export from, such as a town's; repeatable.")
    ] = None,
    json: AsJson = False,
) -> None:
    """Write all data of a person into one archive: every row, every file, and an HTML page to read them.

    From the person's memory, the archive holds utterances, notes, beliefs and plans, the log, background work and
    checkpoints. It also holds the terminal's input history, results of operations, spending and the audit, and the
    person's rows in pools, towns and the memories of other users.
    """
    at, folder, tenant = SystemClock().now(), settings.data.beside, tenant_key_of(tenant)
    async with open_store(settings.data) as ours, open_store(settings.data, tenant) as store:
        async with AsyncExitStack() as opened:
            others = [await opened.enter_async_context(open_store(Location.of(each), tenant)) for each in also or ()]
            found = await person.collect_personal_data(store, user, at, folder, others, ours)
        person.write_archive(found, file)
        await note(store, "exported", found.counts(), about=user, tenant=tenant)
    message = ", ".join(f"{count} {name}" for name, count in found.counts().items() if count)
    tell(json, {"user": user, "file": str(file), **found.counts()}, f"all data of {user} is in {file}: {message}")


@command(app, "data", "mindstream data delete-tenant acme", name="delete-tenant")
async def delete_tenant(
    settings: Settings,
    tenant: Annotated[str, word("NAME", "The name of the tenant.")],
    yes: Yes = False,
    json: AsJson = False,
) -> None:
    """Delete a tenant with all its users: every row, file, fork of a town and token, and copies that a
    repair (`doctor --mend`) kept.

    The files are rewritten, so that no deleted byte stays in them. For PostgreSQL, the operator must clear the
    write-ahead log, replicas and backups.
    """
    if tenant == LOCAL:
        raise InputError("the users of this machine are not a tenant: use `memory erase --user NAME` for each of them")
    if not yes:
        await asyncio.to_thread(confirm_name, f"This permanently erases all data of the tenant {tenant}.", tenant)
    clock, folder = SystemClock(), settings.data.beside
    forks = ForkedTowns(settings.data).folders(tenant)
    async with open_store(settings.data) as ours:
        held = Tokens(lambda: ours, clock)
        tokens = [each for each in await held.each() if each.tenant == tenant]
        for one in tokens:
            await held.revoke(one.id)  # first, so that no further request is accepted
        async with open_store(settings.data, tenant) as store:
            gone = await erase.delete_tenant(store, folder, forks, known=bool(tokens or forks))
        counts = gone.counts() | ({"tokens": len(tokens)} if tokens else {})
        await ours.note(clock.now(), Deed("tenant_deleted", "command", machine_user(), "", tenant, counts))
    message = ", ".join(filter(None, (gone.describe(), count_of(len(tokens), "token") if tokens else "")))
    tell(json, {"tenant": tenant, **counts}, f"{tenant} is deleted: {message}")


@command(app, "data", "mindstream data audit", "mindstream data audit --user ann --json")
async def audit(
    settings: Settings,
    user: Annotated[str, flag("NAME", "Only actions on the data of this user.")] = "",
    tenant: Annotated[str, flag("NAME", "Only actions on the data of this tenant.")] = "",
    limit: Annotated[int, flag("N", "Only the newest N rows.", "--limit", "-n", min=1, max=MAX_ROWS)] = 100,
    json: AsJson = False,
) -> None:
    """Show who erased, exported, imported, expired, deleted or authorised what, when and through which interface.

    Rows are added and never changed. Names of users and tenants are stored as digests, so only a known name can be
    looked up.
    """
    async with open_store(settings.data) as store:
        rows = await store.audit(user, checked_tenant(tenant), limit)
    if json:
        print_json(*({name: getattr(row, name) for name in row.__slots__} for row in rows))
    elif not rows:
        named = " of ".join(filter(None, (user, tenant)))
        say(f"the audit has no action on data of {named}" if named else "the audit is empty", sys.stderr)
    else:
        print_table(
            ("when", "what", "interface", "who", "of", "how much"),
            [
                (
                    format_iso(row.at)[:19].replace("T", " "),
                    row.did,
                    row.door,
                    row.who,
                    (row.about or row.tenant)[:8],
                    ", ".join(f"{count} {name}" for name, count in row.counts.items()),
                )
                for row in rows
            ],
            words=6,
        )
