"""The claim templates of domains: they come and go with the domain, and never take somebody else's place."""

from __future__ import annotations

from contextlib import suppress

import structlog

from grove.fabrics.provider import Domain
from grove.kube.cache.cache import Cache
from grove.kube.client.client import Client
from grove.kube.client.decoding import Object
from grove.kube.client.resource import RESOURCE_CLAIM_TEMPLATES as TEMPLATES
from grove.kube.errors import AlreadyExists, NotFound
from grove.local.standins.dra import objects

log = structlog.get_logger("grove.local")


class Templates:
    """Makes and removes them."""

    def __init__(self, client: Client) -> None:
        self._client = client
        self.cache: Cache[Object] = Cache(TEMPLATES, Object)

    async def make(self, domain: Domain) -> None:
        """The template of a domain. A name that is taken is waited for, as the driver does."""
        meta, name = domain.metadata, template_of(domain)
        known = self.cache.get(meta.namespace, name)
        if known is not None:
            if known.metadata.labels.get(objects.KEY) != meta.uid:
                log.warning("template not made", key=name, action="wait", reason="its name is taken")
            return
        mode = domain.spec["channel"].get("allocationMode", "Single")
        body = objects.claim_template(name, meta.namespace, meta.uid, mode)
        with suppress(AlreadyExists):
            made = await self._client.create(TEMPLATES, body, namespace=meta.namespace, as_type=Object)
            self.cache.apply_reply(made)

    async def remove(self, domain: Domain) -> None:
        """The template of a domain that goes, if it is the domain's."""
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
    """What a domain calls its template."""
    return str(domain.spec["channel"]["resourceClaimTemplate"]["name"])


def name_of(template: Object) -> tuple[str, str]:
    return template.metadata.namespace, template.metadata.name
