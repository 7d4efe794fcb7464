"""What every run of a pool is confined to."""

from enum import StrEnum
from ipaddress import IPv6Address, ip_interface
from typing import Annotated

from pydantic import AfterValidator, ConfigDict, Field, ValidationInfo, field_validator

from agentjobs.apis.base import (
    LabelKey,
    LabelValue,
    MapOf,
    Mebibytes,
    Model,
    ObjectName,
    Seconds,
    Unique,
    Whole,
    cel,
    refused,
    rules,
)


class Egress(StrEnum):
    """Where a run may connect to."""

    NONE = "none"
    """Nowhere."""
    DNS = "dns"
    """The cluster's name servers."""
    INTERNET = "internet"
    """The name servers and public addresses; never private ranges and metadata services."""
    PROXY = "proxy"
    """The proxy and nothing else."""


class ImagePullPolicy(StrEnum):
    """When the image is pulled."""

    ALWAYS = "Always"
    IF_NOT_PRESENT = "IfNotPresent"
    NEVER = "Never"


class TolerationOperator(StrEnum):
    """How a taint's value is compared."""

    EXISTS = "Exists"
    EQUAL = "Equal"


class TaintEffect(StrEnum):
    """What a taint does to pods that do not tolerate it."""

    NO_SCHEDULE = "NoSchedule"
    PREFER_NO_SCHEDULE = "PreferNoSchedule"
    NO_EXECUTE = "NoExecute"


def _is_cidr(text: str) -> str:
    try:
        address = ip_interface(text).ip
    except ValueError as error:
        raise refused("is not a CIDR block", "write it as 10.1.2.3/32 or fd00::/64") from error
    if isinstance(address, IPv6Address) and address.ipv4_mapped:
        raise refused("is an IPv4 address in IPv6 form", "write it as 10.1.2.3/32")
    return text


Cidr = Annotated[
    str,
    # The pattern excludes what Python's parser takes beyond CIDR: netmasks, zones, leading zeros.
    Field(
        max_length=43,
        pattern="^[0-9a-fA-F:.]+/(0|[1-9][0-9]{0,2})$",
        json_schema_extra={
            "hint": "write it as 10.1.2.3/32 or fd00::/64",
            **rules(cel("isCIDR(self)", "is not a CIDR block; write it as 10.1.2.3/32 or fd00::/64")),
        },
    ),
    AfterValidator(_is_cidr),
]

Registry = Annotated[
    str,
    Field(
        min_length=1,
        max_length=255,
        pattern="^[A-Za-z0-9.-]+(:[0-9]{1,5})?(/[A-Za-z0-9._-]+)*$",
        json_schema_extra={"hint": "write host, host:port or host/path, without a scheme"},
    ),
]


class Proxy(Model):
    """The proxy through which runs reach the network."""

    cidr: Cidr
    """Its address as a CIDR block, such as 10.1.2.3/32."""

    port: Whole = Field(ge=1, le=65_535)
    """Its TCP port."""


class Toleration(Model):
    """A taint of nodes that runs tolerate, as in a pod."""

    model_config = ConfigDict(
        json_schema_extra=rules(
            cel(
                "has(self.key) || self.operator == 'Exists'",
                "operator must be Exists when key is not set, which tolerates every taint",
                field=".operator",
            ),
            cel(
                "!has(self.value) || self.value == '' || self.operator == 'Equal'",
                "value must not be set when operator is Exists",
                field=".value",
            ),
            cel(
                "!has(self.tolerationSeconds) || (has(self.effect) && self.effect == 'NoExecute')",
                "tolerationSeconds must not be set unless effect is NoExecute",
                field=".tolerationSeconds",
            ),
        )
    )

    key: LabelKey | None = None
    """Key of the taint. Every key by default."""

    operator: TolerationOperator = Field(
        default=TolerationOperator.EQUAL, strict=False, validate_default=True
    )
    """How the value is compared."""

    value: LabelValue | None = None
    """Value of the taint, for the operator Equal. Empty by default."""

    effect: TaintEffect | None = Field(default=None, strict=False)
    """Effect of the taint. Every effect by default."""

    toleration_seconds: Annotated[Seconds, Field(ge=0, le=2**31 - 1)] | None = None
    """How long a NoExecute taint is tolerated. For ever by default."""

    @field_validator("operator")
    @classmethod
    def _no_key_needs_exists(cls, operator: TolerationOperator, info: ValidationInfo) -> TolerationOperator:
        if "key" in info.data and info.data["key"] is None and operator is not TolerationOperator.EXISTS:
            raise refused("tolerates nothing without a key", "set key, or operator: Exists for every taint")
        return operator

    @field_validator("value")
    @classmethod
    def _exists_has_no_value(cls, value: str | None, info: ValidationInfo) -> str | None:
        if value and info.data.get("operator") is TolerationOperator.EXISTS:
            raise refused("is not compared by operator Exists", "leave it out, or set operator: Equal")
        return value

    @field_validator("toleration_seconds")
    @classmethod
    def _seconds_need_no_execute(cls, seconds: int | None, info: ValidationInfo) -> int | None:
        effect = info.data.get("effect", TaintEffect.NO_EXECUTE)  # a faulty one is refused by itself
        if seconds is not None and effect is not TaintEffect.NO_EXECUTE:
            raise refused("applies to the effect NoExecute alone", "leave it out, or set effect: NoExecute")
        return seconds


class Sandbox(Model):
    """What every run of the pool is confined to."""

    model_config = ConfigDict(
        json_schema_extra=rules(
            cel(
                "(has(self.egress) && self.egress == 'proxy') == has(self.proxy)",
                "proxy belongs to egress: proxy; set both or neither",
                field=".proxy",
            )
        )
    )

    runtime_class_name: ObjectName | None = None
    """RuntimeClass of the pods, such as gvisor or kata. The cluster's by default."""

    egress: Egress = Field(default=Egress.NONE, strict=False)
    """Where runs may connect to: none (nowhere), dns (the cluster's name servers), internet (name servers and
    public addresses, never private ranges and metadata services), or proxy (the proxy and nothing else)."""

    proxy: Proxy | None = Field(default=None, validate_default=True)
    """The proxy, where egress is proxy. Unset by default."""

    registries: Unique[Registry] = Field(default_factory=list, max_length=64)
    """Where images may come from: a host, and where given a path, compared segment by segment. Anywhere by
    default."""

    image_pull_policy: ImagePullPolicy = Field(default=ImagePullPolicy.ALWAYS, strict=False)
    """When the image is pulled. With another policy than Always, a private image that one team pulled can be
    run by every team on the node."""

    image_pull_secrets: Unique[ObjectName] = Field(default_factory=list, max_length=16)
    """Secrets of the run's namespace that images are pulled with. None by default."""

    node_selector: MapOf[LabelKey, LabelValue] = Field(default_factory=dict, max_length=32)
    """Labels that a node must have to run the pool's pods. None by default."""

    tolerations: list[Toleration] = Field(default_factory=list, max_length=16)
    """Taints of nodes that the pool's pods tolerate. None by default."""

    ephemeral_storage_mb: Mebibytes = Field(default=1024, ge=64, le=1_048_576)
    """Disk space of a run in MiB, split over its temporary, home and workspace folders and its logs."""

    @field_validator("proxy")
    @classmethod
    def _proxy_goes_with_its_egress(cls, proxy: Proxy | None, info: ValidationInfo) -> Proxy | None:
        egress = info.data.get("egress")
        if egress is Egress.PROXY and proxy is None:
            raise refused("is not set though egress is proxy", "set its cidr and port")
        if egress not in (None, Egress.PROXY) and proxy is not None:
            raise refused(f"is set though egress is {egress}", "set egress: proxy, or leave it out")
        return proxy
