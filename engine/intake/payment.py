"""The interface's resources as Structs: the one source for validation, vocabulary and OpenAPI.

Each type carries what its field may be (`Meta`: bounds, patterns, words); `extra={"rule": …}`
names the rule in `field_rules.py` that a type cannot express. A missing value reads as None.
Field names are the interface's own, so encoding a `Payment` gives what a merchant reads.

| field | carried as |
|---|---|
| an instant | `datetime` with the offset that was sent |
| `amount` | the double nearest to the two decimals sent |
| a number in `metadata` | a double that reads as what was sent when rounded to 6 places |
| an address | the text that was sent; `addresses.py` reads it |
| `headers` | name to value, an array of values joined with `, ` |
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any, Final, Literal, TypeAlias, TypeVar

from msgspec import Meta, Struct

from tollkeeper.engine.instants import Rfc3339, to_microseconds
from tollkeeper.engine.intake.addresses import LONGEST
from tollkeeper.engine.intake.codes import MEANINGS, ResponseMeaning

T = TypeVar("T")

MAX_TEXT = 256
MAX_HEADERS = 100
MAX_HEADER = 8 * 1024
MAX_TRANSACTIONS = 100
MAX_UPDATES = 100
MAX_AMOUNT = 1_000_000_000_000
MAX_DURATION = 2**31 - 1

# A field that may be left out but not be null: None to a reader, the bare type to the decoder.
if TYPE_CHECKING:
    Omittable: TypeAlias = T | None
else:

    class Omittable:
        def __class_getitem__(cls, sent: object) -> object:
            return sent


_PaymentType: TypeAlias = Literal["purchase", "verify"]
PaymentStatus: TypeAlias = Literal["initiated", "succeeded", "declined", "failed", "blocked"]
_FinalStatus: TypeAlias = Literal["succeeded", "declined", "failed", "blocked"]
_TransactionStatus: TypeAlias = Literal["succeeded", "declined", "failed", "canceled"]
_Network: TypeAlias = Literal[
    "visa",
    "mastercard",
    "american_express",
    "diners_club",
    "elo",
    "hipercard",
    "jcb",
    "discover",
    "other",
]
_Presence: TypeAlias = Literal["card_present", "card_not_present"]
_Provider: TypeAlias = Literal["basic", "vendorjs"]

_IP_FORMS: Final = {"anyOf": [{"format": "ipv4"}, {"format": "ipv6"}]}

_Text: TypeAlias = Annotated[str, Meta(max_length=MAX_TEXT)]
_Blank: TypeAlias = Annotated[_Text, Meta(extra={"blank": True})]
RequiredText: TypeAlias = Annotated[str, Meta(min_length=1, max_length=MAX_TEXT)]
_Amount: TypeAlias = Annotated[float, Meta(ge=0, le=MAX_AMOUNT, extra={"rule": "amount"})]
Timestamp: TypeAlias = Annotated[Rfc3339, Meta(extra={"rule": "instant"})]
_Currency: TypeAlias = Annotated[
    str,
    Meta(extra={"rule": "currency"}, examples=["BRL"], extra_json_schema={"pattern": "^[A-Z]{3}$"}),
]
_Country: TypeAlias = Annotated[
    str,
    Meta(
        extra={"rule": "country", "blank": True},
        examples=["BR"],
        extra_json_schema={"pattern": "^([A-Z]{2})?$"},
    ),
]
_CategoryCode: TypeAlias = Annotated[
    str,
    Meta(
        extra={"rule": "category_code"},
        examples=["5411"],
        extra_json_schema={"pattern": "^[0-9]{4}$"},
    ),
]


def _digits(count: int, rule: str) -> Meta:
    return Meta(
        min_length=count,
        max_length=count,
        extra={"rule": rule, "blank": True},
        extra_json_schema={"pattern": f"^[0-9]{{{count}}}$"},
    )


_Bin: TypeAlias = Annotated[str, _digits(8, "eight_digits")]
_LastFour: TypeAlias = Annotated[str, _digits(4, "four_digits")]
_DeviceAddress: TypeAlias = Annotated[
    str,
    Meta(max_length=LONGEST, extra={"rule": "device_address"}, extra_json_schema=_IP_FORMS),
]
_BackendAddress: TypeAlias = Annotated[
    str, Meta(max_length=LONGEST, extra={"rule": "address"}, extra_json_schema=_IP_FORMS)
]

# A header's value is text to a reader; an array of values is joined as the body is read.
# Nothing about a rule's name fails a request: any other value becomes text that names no rule.
if TYPE_CHECKING:
    _HeaderValue: TypeAlias = str
    _RuleName: TypeAlias = str | None
else:
    _HeaderValue = str | list[str]
    _RuleName = Any

_Headers: TypeAlias = Annotated[
    dict[str, _HeaderValue], Meta(max_length=MAX_HEADERS, extra={"rule": "headers"})
]
_Metadata: TypeAlias = Annotated[dict[str, Any], Meta(extra={"rule": "metadata"})]


class Card(Struct, frozen=True, gc=False, omit_defaults=True):
    """The card that pays."""

    network: Annotated[_Network, Meta(description="Card network.")]
    presence: Annotated[_Presence, Meta(description="Whether the card was present.")]
    bin: Annotated[_Bin | None, Meta(description="First 8 digits of the card number.")] = None
    last_four: Annotated[
        _LastFour | None, Meta(description="Last 4 digits of the card number.")
    ] = None


class Method(Struct, frozen=True, gc=False, omit_defaults=True):
    """How the payment is paid."""

    type: Annotated[RequiredText, Meta(description="Payment method type, free text.")]
    card: Annotated[Omittable[Card], Meta(description="The card that pays.")] = None


class Backend(Struct, frozen=True, gc=False, omit_defaults=True):
    """The external server that calls the merchant's backend."""

    ip_address: Annotated[
        _BackendAddress | None,
        Meta(description="IPv4 or IPv6 address; a private one is ignored in the analysis."),
    ] = None
    headers: Annotated[
        _Headers | None,
        Meta(description="HTTP headers of the external server; confidential ones are removed."),
    ] = None


class Fingerprint(Struct, frozen=True, gc=False, omit_defaults=True):
    """A fingerprint of the user's device."""

    id: Annotated[RequiredText, Meta(description="Unique code of the device fingerprint.")]
    provider: Annotated[_Provider, Meta(description="What made the fingerprint.")]


class Device(Struct, frozen=True, gc=False, omit_defaults=True):
    """The user's device; not sent when no user takes part, as in a recurring renewal."""

    ip_address: Annotated[
        _DeviceAddress | None,
        Meta(description="IPv4 or IPv6 address; a private one is refused."),
    ] = None
    headers: Annotated[
        _Headers | None,
        Meta(description="HTTP headers sent by the device; confidential ones are removed."),
    ] = None
    fingerprint: Annotated[
        Omittable[Fingerprint], Meta(description="Fingerprint of the device.")
    ] = None


class User(Struct, frozen=True, gc=False, omit_defaults=True):
    """The user who pays."""

    id: Annotated[_Blank | None, Meta(description="User identifier.")] = None
    email: Annotated[
        _Blank | None, Meta(description="User e-mail address, or only its domain part.")
    ] = None


class Order(Struct, frozen=True, gc=False, omit_defaults=True):
    """The order, subscription or cart that is paid."""

    id: Annotated[
        _Blank | None, Meta(description="Order identifier, the same when a payment is retried.")
    ] = None


class Merchant(Struct, frozen=True, gc=False, omit_defaults=True):
    """The business that performs the operation."""

    id: Annotated[RequiredText, Meta(description="Code of the business unit or company.")]
    country: Annotated[_Country | None, Meta(description="Country, ISO 3166-1 alpha-2.")] = None
    category_code: Annotated[
        _CategoryCode | None, Meta(description="Merchant category code, ISO 18245.")
    ] = None


class Connector(Struct, frozen=True, gc=False, omit_defaults=True):
    """The acquirer, sub-acquirer or gateway of an attempt."""

    id: Annotated[RequiredText, Meta(description="Code of the contract with the connector.")]
    type: Annotated[Omittable[_Text], Meta(description="Connector type, free text.")] = None
    response_code: Annotated[
        _Text | None,
        Meta(
            description="Response code of the attempt; required when the transaction "
            "`status` is `succeeded` or `declined`."
        ),
    ] = None

    @property
    def meaning(self) -> ResponseMeaning | None:
        """The meaning of the response code, missing where the code is."""
        return None if self.response_code is None else MEANINGS.get(self.response_code, "other")


class Transaction(Struct, frozen=True, gc=False, omit_defaults=True):
    """One attempt to carry out the payment."""

    status: Annotated[_TransactionStatus, Meta(description="How the attempt ended.")]
    connector: Annotated[Connector, Meta(description="Payment connector used.")]
    id: Annotated[
        Omittable[RequiredText], Meta(description="Transaction code, unique in its payment.")
    ] = None
    duration: Annotated[
        Omittable[Annotated[int, Meta(ge=0, le=MAX_DURATION)]],
        Meta(description="Execution time in milliseconds."),
    ] = None
    timestamp: Annotated[
        Timestamp | None,
        Meta(description="When the attempt was initiated; the current time when not sent."),
    ] = None

    @property
    def microseconds(self) -> int | None:
        """`timestamp` in µs since 1970-01-01T00:00:00Z."""
        return None if self.timestamp is None else to_microseconds(self.timestamp)


class AnalyzeRule(Struct, frozen=True, gc=False, omit_defaults=True):
    """The rule that the merchant asks for."""

    name: Annotated[
        _RuleName,
        Meta(
            description="Name of a registered rule. One that is unknown, or no name at all, is no "
            "error: no rule is applied.",
            extra={"free": True},
            extra_json_schema={"anyOf": [{"type": "string"}, {"type": "null"}]},
        ),
    ] = None


class Analyze(Struct, frozen=True, gc=False, omit_defaults=True):
    """Which analyses are asked for."""

    bot_behaviour: Annotated[
        Omittable[bool], Meta(description="Whether automated behaviour is looked for.")
    ] = None
    rule: Annotated[
        AnalyzeRule | None, Meta(description="The rule to apply to the recommendation.")
    ] = None


class Creation(Struct, frozen=True, gc=False, omit_defaults=True, kw_only=True):
    """A payment as a merchant sends it."""

    id: Annotated[
        RequiredText | None,
        Meta(description="Payment identifier, unique in the account; generated when not sent."),
    ] = None
    type: Annotated[_PaymentType, Meta(description="Purchase or verification.")]
    status: Annotated[
        Omittable[PaymentStatus], Meta(description="Payment status; `initiated` when not sent.")
    ] = None
    currency: Annotated[_Currency, Meta(description="Currency code, ISO 4217.")]
    amount: Annotated[
        Omittable[_Amount], Meta(description="Amount with at most two decimals.", examples=[129.9])
    ] = None
    timestamp: Annotated[
        Timestamp | None,
        Meta(description="When the payment was initiated; the current time when not sent."),
    ] = None
    method: Annotated[Method, Meta(description="Payment method.")]
    backend: Annotated[
        Omittable[Backend], Meta(description="External server that calls the merchant's backend.")
    ] = None
    device: Annotated[Omittable[Device], Meta(description="The user's device.")] = None
    user: Annotated[Omittable[User], Meta(description="The user who pays.")] = None
    order: Annotated[Omittable[Order], Meta(description="The order that is paid.")] = None
    merchant: Annotated[Merchant, Meta(description="The business that performs the operation.")]
    transactions: Annotated[
        tuple[Transaction, ...],
        Meta(
            max_length=MAX_TRANSACTIONS,
            description="Attempts; required when `status` is `succeeded` or `declined`.",
        ),
    ] = ()
    metadata: Annotated[_Metadata | None, Meta(description="Free-form data, at most 16 KiB.")] = (
        None
    )
    analyze: Annotated[Omittable[Analyze], Meta(description="Analyses asked for.")] = None


class Payment(Creation, frozen=True, gc=False, omit_defaults=True, kw_only=True):
    """A payment as stored: without confidential data, with defaults for what was not sent.

    Each of its transactions has a timestamp.
    """

    id: Annotated[RequiredText, Meta(description="Payment identifier, unique in the account.")]
    status: Annotated[PaymentStatus, Meta(description="Payment status.")]
    timestamp: Annotated[Timestamp, Meta(description="When the payment was initiated.")]


class MethodUpdate(Struct, frozen=True, gc=False, omit_defaults=True):
    """What an update adds to the payment method."""

    type: Annotated[
        Omittable[RequiredText], Meta(description="Payment method type, free text.")
    ] = None
    card: Annotated[Omittable[Card], Meta(description="The card that pays.")] = None


class Update(Struct, frozen=True, gc=False, omit_defaults=True):
    """The final status of a payment, with data that was not there at its creation."""

    status: Annotated[_FinalStatus, Meta(description="Final payment status.")]
    method: Annotated[
        Omittable[MethodUpdate], Meta(description="Data of the payment method not sent before.")
    ] = None
    transactions: Annotated[
        tuple[Transaction, ...],
        Meta(
            max_length=MAX_TRANSACTIONS,
            description="Attempts; required when `status` is `succeeded` or `declined`.",
        ),
    ] = ()


class CreationBody(Struct, frozen=True, gc=False):
    """The body of `POST /payments`."""

    payment: Creation


class UpdateBody(Struct, frozen=True, gc=False):
    """The body of `PATCH /payments/{id}`."""

    payment: Update
