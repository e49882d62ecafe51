"""The claim templates of domains: created and deleted with the domain, without replacing other objects."""

from __future__ import annotations

from contextlib import suppress

from grove.fabrics.provider import Domain
from grove.kube.cache.cache import Cache
from grove.kube.client.client import Client
from grove.kube.client.decoding import Object
from grove.kube.client.resource import RESOURCE_CLAIM_TEMPLATES as TEMPLATES
from grove.kube.errors import AlreadyExists, NotFound
from grove.local.standins.dra import objects
from grove.logger import get_logger

log = get_logger("grove.local")


class Templates:
    """Creates and deletes claim templates."""

    def __init__(self, client: Client) -> None:
        self._client = client
        self.cache: Cache[Object] = Cache(TEMPLATES, Object)

    async def create(self, domain: Domain) -> None:
        """Create the template of a domain. Waits while another object has its name, as the driver does."""
        meta, name = domain.metadata, template_of(domain)
        known = self.cache.get(meta.namespace, name)
        if known is not None:
            if known.metadata.labels.get(objects.KEY) != meta.uid:
                log.warning(
                    "template not created", key=name, action="wait", reason="another object has its name"
                )
            return
        mode = domain.spec["channel"].get("allocationMode", "Single")
        body = objects.claim_template(name, meta.namespace, meta.uid, mode)
        with suppress(AlreadyExists):
            created = await self._client.create(TEMPLATES, body, namespace=meta.namespace, as_type=Object)
            self.cache.apply_reply(created)

    async def remove(self, domain: Domain) -> None:
        """Delete the template of a deleted domain, if it belongs to the domain."""
        meta, name = domain.metadata, template_of(domain)
        where = meta.namespace
        try:
            found = await self._client.get(TEMPLATES, name, as_type=Object, namespace=where)
            if found.metadata.labels.get(objects.KEY) != meta.uid:
                return
            await self._client.delete(TEMPLATES, name, as_type=Object, namespace=where)
            free = {"metadata": {"finalizers": None}}
            await self._client.patch(TEMPLATES, name, free, as_type=Object, namespace=where)
        except NotFound:
            return


def template_of(domain: Domain) -> str:
    """The name of the template of a domain."""
    return str(domain.spec["channel"]["resourceClaimTemplate"]["name"])


def name_of(template: Object) -> tuple[str, str]:
    return template.metadata.namespace, template.metadata.name
