"""Addresses, numbers and keys that say who somebody is, found by Presidio's recognisers and detect-secrets' plugins.

Both come with `mindstream[redact]`. They are asked without a language model: what is found is what has a form and
mostly a check digit. Names of people and places, and dates of birth, have none: they stay.
"""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Iterator
from functools import cache
from ipaddress import ip_address
from typing import Any, NamedTuple

from mindstream.errors import SettingsError
from mindstream.intake import Cleaned, Redactor

NAMES = ("presidio",)
SURE = 0.4
"""Presidio gives a phone number .4, and what has a form alone, as any nine digits, less."""
RECOGNISERS = {
    "email": ("EmailRecognizer",), "card": ("CreditCardRecognizer",), "iban": ("IbanRecognizer",),
    "id": (
        "UsSsnRecognizer", "EsNifRecognizer", "EsNieRecognizer", "ItFiscalCodeRecognizer", "PlPeselRecognizer",
        "FiPersonalIdentityCodeRecognizer", "SePersonnummerRecognizer", "DeTaxIdRecognizer",
        "DeSocialSecurityRecognizer", "InAadhaarRecognizer", "UkNinoRecognizer", "NhsRecognizer", "KrRrnRecognizer",
        "SgFinRecognizer", "TrNationalIdRecognizer", "ThTninRecognizer",
    ),
    "phone": ("PhoneRecognizer",), "ip": ("IpRecognizer",), "wallet": ("CryptoRecognizer",),
    "mac": ("MacAddressRecognizer",),
}  # fmt: skip
"""Kinds, by the mark that stands in their place, and who finds them. An earlier kind has the word where two do."""
PHONE_REGIONS = ("US", "GB", "DE", "FR", "ES", "IT", "NL", "PL", "PT", "SE", "IN", "BR")
"""Where numbers without a + may be from."""


class _Found(NamedTuple):
    start: int
    end: int
    kind: str


def open_redactor(name: str) -> Redactor:
    """Return the redactor of a name.

    Raises:
        SettingsError: there is none of that name, or it is not installed.
    """
    if name not in NAMES:
        raise SettingsError(f"there is no redactor {name!r}: presidio is one")
    try:
        return _presidio()
    except ImportError:
        raise SettingsError("--redact presidio needs what finds it: pip install 'mindstream[redact]'") from None


@cache
def _presidio() -> Presidio:
    return Presidio()


class Presidio:
    """Takes out what Presidio and detect-secrets find."""

    def __init__(self) -> None:
        self._recognisers = list(_recognisers())
        self._secrets = list(_secrets())
        self._one_at_a_time = threading.Lock()

    def clean(self, text: str) -> Cleaned:
        """Return a text with marks in place of what was found."""
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
                if each.score >= SURE:
                    yield _Found(each.start, each.end, kind)
        for pattern in self._secrets:
            yield from (_Found(each.start(), each.end(), "key") for each in pattern.finditer(text))


def _apart(found: list[_Found]) -> Iterator[_Found]:
    """Yield what was found, each place once: where two overlap the kind that is named first, over all of both."""
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

    shipped = tldextract.TLDExtract(
        suffix_list_urls=(), cache_dir=None
    )  # the list that came with it: nothing is fetched

    class Email(predefined_recognizers.EmailRecognizer):  # type: ignore[misc, unused-ignore]
        def validate_result(self, pattern_text: str) -> bool:
            return bool(shipped(pattern_text.rpartition("@")[2]).fqdn)

    class Ip(predefined_recognizers.IpRecognizer):  # type: ignore[misc, unused-ignore]
        def invalidate_result(self, pattern_text: str) -> bool:
            return bool(super().invalidate_result(pattern_text)) or not ip_address(pattern_text).is_global

    for kind, names in RECOGNISERS.items():
        for name in names:
            if name == "EmailRecognizer":
                yield kind, Email()
            elif name == "IpRecognizer":
                yield kind, Ip()
            elif name == "PhoneRecognizer":
                yield kind, predefined_recognizers.PhoneRecognizer(supported_regions=PHONE_REGIONS)
            else:
                yield kind, getattr(predefined_recognizers, name)(supported_language="en")


def _secrets() -> Iterator[Any]:
    """Yield the patterns of keys: a plugin tells a part of what it finds, and all of it is to go."""
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
