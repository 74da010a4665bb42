"""What a town does not say by keys: without them it lives on by a model only, or hardly at all."""

from __future__ import annotations

from mindstream_town.setting import Setting


def missing_keys(setting: Setting) -> tuple[str, ...]:
    """Name the keys of a town file that a town without a model would need and that are not there; none: it is prepared.

    A resident without a day is at home from 7 to 23; an object that burns is no more than broken.
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
