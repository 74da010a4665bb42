"""Keys that a town needs to live without a model."""

from __future__ import annotations

from mindstream_town.setting import Setting


def missing_keys(setting: Setting) -> tuple[str, ...]:
    """Return the missing keys of a town file that a town without a model needs; empty: it is complete.

    Without `day` a resident is at home from 7 to 23; without `danger` a fire counts as any other condition.
    """
    people = setting.people.values()
    idle = [person.name for person in people if not person.day]
    bedless = [person.name for person in people if not person.bed]
    lacking = [f"{key} of {_names(names)}" for key, names in (("day", idle), ("bed", bedless)) if names]
    if not setting.conditions.danger:
        lacking.append("danger of [conditions]")
    if not any(rule.purpose for _, rule in setting.rules):
        lacking.append("purpose of places (eat, shop)")
    return tuple(lacking)


def _names(names: list[str]) -> str:
    return ", ".join(names[:3]) + (f" and {len(names) - 3} more" if len(names) > 3 else "")
