"""Find personal data and secrets in text with Presidio's recognisers and the plugins of detect-secrets.

Both are installed by `mindstream[redact]` and used without a language model: they find data with a fixed form, often
with a check digit. Names of people, names of places, and dates of birth have no such form, and are not found.
"""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Iterator
from functools import cache, partial
from ipaddress import ip_address
from typing import Any, NamedTuple

from mindstream.errors import SettingsError
from mindstream.redaction import Cleaned, Redactor

NAMES = ("presidio",)
MIN_SCORE = 0.4
"""Minimum score of a match. Presidio scores a phone number as 0.4, and digits that only look like one lower."""
RECOGNISERS = {
    "email": "Email",
    "card": "CreditCard",
    "iban": "Iban",
    "id": "UsSsn EsNif EsNie ItFiscalCode PlPesel FiPersonalIdentityCode SePersonnummer DeTaxId DeSocialSecurity"
    " InAadhaar UkNino Nhs KrRrn SgFin TrNationalId ThTnin",
    "phone": "Phone",
    "ip": "Ip",
    "wallet": "Crypto",
    "mac": "MacAddress",
}
"""For each kind, the names of its recognisers; the kind's name replaces their matches. If matches of several of
these kinds overlap, the kind that is listed first is used."""
PHONE_REGIONS = ("US", "GB", "DE", "FR", "ES", "IT", "NL", "PL", "PT", "SE", "IN", "BR")
"""Regions whose phone numbers are found without a + and country code."""


class _Found(NamedTuple):
    start: int
    end: int
    kind: str


def open_redactor(name: str) -> Redactor:
    """Return the redactor with this name.

    Raises:
        SettingsError: there is no such redactor, or it is not installed.
    """
    if name not in NAMES:
        raise SettingsError(f"there is no redactor {name!r}; the only one is presidio")
    try:
        return _presidio()
    except ImportError:
        raise SettingsError("--redact presidio is not installed: pip install 'mindstream[redact]'") from None


@cache
def _presidio() -> Presidio:
    return Presidio()


class Presidio:
    """Redact what Presidio and detect-secrets find."""

    def __init__(self) -> None:
        self._recognisers = list(_recognisers())
        self._secrets = list(_secrets())
        self._one_at_a_time = threading.Lock()

    def clean(self, text: str) -> Cleaned:
        """Replace each piece of personal data in a text by its kind, such as `[email]`.

        Return the new text, and the number of pieces of each kind.
        """
        with self._one_at_a_time:
            found = sorted(self._find(text))
        parts, taken, upto = [], Counter[str](), 0
        for each in _apart(found):
            parts += [text[upto : each.start], f"[{each.kind}]"]
            taken[each.kind] += 1
            upto = each.end
        return Cleaned("".join([*parts, text[upto:]]), dict(taken)) if taken else Cleaned(text)

    def _find(self, text: str) -> Iterator[_Found]:
        for kind, recogniser in self._recognisers:
            if kind != "email" and not any(each.isdigit() for each in text):
                continue
            for each in recogniser.analyze(text, recogniser.supported_entities, None) or ():
                if each.score >= MIN_SCORE:
                    yield _Found(each.start, each.end, kind)
        for pattern in self._secrets:
            yield from (_Found(each.start(), each.end(), "key") for each in pattern.finditer(text))


def _apart(found: list[_Found]) -> Iterator[_Found]:
    """Merge overlapping matches into one match that covers them all.

    The kind of the merged match is `key` (a secret) if a key is among the matches. Otherwise it is the kind that is
    listed first in RECOGNISERS.
    """
    order = ["key", *RECOGNISERS]
    held: _Found | None = None
    for each in found:
        if held is None or each.start >= held.end:
            if held is not None:
                yield held
            held = each
        else:
            kind = min(held.kind, each.kind, key=order.index)
            held = _Found(held.start, max(held.end, each.end), kind)
    if held is not None:
        yield held


def _recognisers() -> Iterator[tuple[str, Any]]:
    import tldextract
    from presidio_analyzer import predefined_recognizers

    phone = predefined_recognizers.PhoneRecognizer
    shipped = tldextract.TLDExtract(suffix_list_urls=(), cache_dir=None)  # use the bundled list, without network access

    class Email(predefined_recognizers.EmailRecognizer):  # type: ignore[misc, unused-ignore]
        def validate_result(self, pattern_text: str) -> bool:
            return bool(shipped(pattern_text.rpartition("@")[2]).fqdn)

    class Ip(predefined_recognizers.IpRecognizer):  # type: ignore[misc, unused-ignore]
        def invalidate_result(self, pattern_text: str) -> bool:
            return bool(super().invalidate_result(pattern_text)) or not ip_address(pattern_text).is_global

    special: dict[str, Any] = {"Email": Email, "Ip": Ip, "Phone": partial(phone, supported_regions=PHONE_REGIONS)}
    for kind, names in RECOGNISERS.items():
        for name in names.split():
            make = special.get(name) or getattr(predefined_recognizers, f"{name}Recognizer")
            yield kind, make(supported_language="en")


def _secrets() -> Iterator[Any]:
    """Yield the patterns of detect-secrets for keys. The plugins themselves report only a part of a key, but the whole
    key must be removed."""
    from detect_secrets.plugins import (
        aws,
        github_token,
        gitlab_token,
        jwt,
        npm,
        openai,
        pypi_token,
        sendgrid,
        slack,
        stripe,
        telegram_token,
        twilio,
    )

    for plugin in (
        aws.AWSKeyDetector,
        github_token.GitHubTokenDetector,
        gitlab_token.GitLabTokenDetector,
        jwt.JwtTokenDetector,
        npm.NpmDetector,
        openai.OpenAIDetector,
        pypi_token.PypiTokenDetector,
        sendgrid.SendGridDetector,
        slack.SlackDetector,
        stripe.StripeDetector,
        telegram_token.TelegramBotTokenDetector,
        twilio.TwilioKeyDetector,
    ):
        yield from plugin.denylist
