"""The webhook configuration where the operator runs on this machine: the API server calls it by URL.

In a cluster it would be called through the Service of `deploy/base/admission.yaml`; all else is as there.
"""

import json
from typing import Any

import yaml

from deploy.local.cluster import ROOT
from deploy.local.kubectl import Kubectl, retry

MANIFEST = ROOT / "deploy" / "base" / "admission.yaml"
KIND = "ValidatingWebhookConfiguration"
NAME = "agentjobs"
# What kubectl prints when the API server asked and got no answer.
UNANSWERED = "failed calling webhook"


def install(kubectl: Kubectl, address: str) -> None:
    """Have creates and edits reviewed at `address` (host:port), or leave alone what a leader has written."""
    # Refused when a leader writes between the look and the apply; then it is looked at again.
    retry(lambda: kubectl.apply(configuration(address, _stored(kubectl))), seconds=10)


def remove(kubectl: Kubectl) -> None:
    """Have nothing reviewed: where no operator is meant to run nobody would answer."""
    kubectl("delete", KIND, NAME, "--ignore-not-found")


def configuration(address: str, stored: dict[str, Any] | None = None) -> dict[str, Any]:
    """The manifest, with the address in place of the Service; a hook that is stored keeps its own way."""
    manifests = yaml.safe_load_all(MANIFEST.read_text())
    manifest: dict[str, Any] = next(entry for entry in manifests if entry["kind"] == KIND)
    ways = {hook["name"]: hook["clientConfig"] for hook in (stored or {}).get("webhooks", [])}
    for hook in manifest["webhooks"]:
        path = hook["clientConfig"]["service"]["path"]
        hook["clientConfig"] = ways.get(hook["name"], {"url": f"https://{address}{path}"})
    if stored:
        manifest["metadata"]["resourceVersion"] = stored["metadata"]["resourceVersion"]
    return manifest


def _stored(kubectl: Kubectl) -> dict[str, Any] | None:
    text = kubectl("get", KIND, NAME, "--ignore-not-found", "-o", "json")
    found: dict[str, Any] | None = json.loads(text) if text.strip() else None
    return found
