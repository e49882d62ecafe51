"""Sign-in with tokens of the cluster: each user sees what they may list, and nothing else."""

from __future__ import annotations

from collections.abc import AsyncIterator

import pytest
import pytest_asyncio
from axe_playwright_python.async_playwright import Axe
from playwright.async_api import Browser, Page, expect

from grove.kube.client.decoding import Object
from grove.kube.client.resource import NAMESPACES, SERVICE_ACCOUNTS, Resource
from tests.browser.support.dashboard import Dashboard, dashboard
from tests.browser.support.demo import NAME, NAMESPACE, SECOND, Demo
from tests.browser.support.guard import allow, guarded
from tests.service_accounts import request_token

RBAC = "rbac.authorization.k8s.io"
BINDINGS = Resource(RBAC, "v1", "rolebindings", "RoleBinding")
CLUSTER_BINDINGS = Resource(RBAC, "v1", "clusterrolebindings", "ClusterRoleBinding", namespaced=False)
CLUSTER_ROLES = Resource(RBAC, "v1", "clusterroles", "ClusterRole", namespaced=False)
HOME = "dashboard-users"
READER = {
    "metadata": {"name": "dashboard-reader"},
    "rules": [{"apiGroups": ["*"], "resources": ["*"], "verbs": ["get", "list", "watch"]}],
}
ROLE = {"kind": "ClusterRole", "name": "dashboard-reader", "apiGroup": RBAC}


@pytest_asyncio.fixture(scope="session", loop_scope="session")
async def tokens(deployed: Demo) -> dict[str, str]:
    """The tokens of an administrator, of a user of one namespace, and of a user without rights."""
    client = deployed.client
    await client.create(NAMESPACES, {"metadata": {"name": HOME}}, as_type=Object)
    await client.create(CLUSTER_ROLES, READER, as_type=Object)
    for name in ("admin", "tenant", "stranger"):
        await client.create(SERVICE_ACCOUNTS, {"metadata": {"name": name}}, namespace=HOME, as_type=Object)
    subject = {"kind": "ServiceAccount", "namespace": HOME}
    admin = {"metadata": {"name": "admin"}, "roleRef": ROLE, "subjects": [{**subject, "name": "admin"}]}
    tenant = {"metadata": {"name": "tenant"}, "roleRef": ROLE, "subjects": [{**subject, "name": "tenant"}]}
    await client.create(CLUSTER_BINDINGS, admin, as_type=Object)
    await client.create(BINDINGS, tenant, namespace=NAMESPACE, as_type=Object)
    return {name: await request_token(client, HOME, name) for name in ("admin", "tenant", "stranger")}


@pytest_asyncio.fixture(scope="session", loop_scope="session")
async def signed(deployed: Demo) -> AsyncIterator[Dashboard]:
    """A dashboard with sign-in and a certificate of its own."""
    async with dashboard("--sign-in", "--kubeconfig", str(deployed.cluster.kubeconfig)) as found:
        yield found


@pytest_asyncio.fixture(loop_scope="session")
async def secure(browser: Browser, signed: Dashboard) -> AsyncIterator[Page]:
    """The form to sign in, in a context of its own."""
    context = await browser.new_context(ignore_https_errors=True, reduced_motion="reduce")
    page = await context.new_page()
    async with guarded(page):
        allow(page, "401")  # the first request of the page finds out that it must sign in
        await page.goto(signed.address)
        await expect(page.get_by_label("Bearer token")).to_be_focused()
        yield page
    await context.close()


async def sign_in(page: Page, token: str) -> None:
    await page.get_by_label("Bearer token").fill(token)
    await page.keyboard.press("Enter")


async def test_wrong_token_is_refused_in_one_line(secure):
    await sign_in(secure, "not.a.token")
    alert = secure.get_by_role("alert")
    await expect(alert).not_to_be_empty()
    assert len((await alert.inner_text()).splitlines()) == 1
    await expect(secure.get_by_label("Bearer token")).to_be_focused()
    assert await secure.context.cookies() == []


async def test_administrator_sees_everything(secure, tokens, signed):
    await sign_in(secure, tokens["admin"])
    await expect(secure.locator("header .pill")).to_have_text("live")
    await secure.goto(f"{signed.address}#/workloads")
    for name in (NAME, SECOND):
        await expect(secure.get_by_role("row").filter(has_text=name).first).to_be_visible()
    await expect(secure.locator("header")).to_contain_text(f"system:serviceaccount:{HOME}:admin")


async def test_token_is_nowhere_in_the_page(secure, tokens, signed):
    await sign_in(secure, tokens["admin"])
    await expect(secure.locator("header .pill")).to_have_text("live")
    (cookie,) = await secure.context.cookies()
    assert (cookie["httpOnly"], cookie["secure"], cookie["sameSite"]) == (True, True, "Strict")
    stored = "() => JSON.stringify([location.href, document.cookie, {...localStorage}, {...sessionStorage}])"
    for secret in (tokens["admin"], cookie["value"]):
        assert secret not in await secure.evaluate(stored)
        assert secret not in await secure.content()


async def test_user_of_one_namespace_sees_only_that(secure, tokens, signed):
    await sign_in(secure, tokens["tenant"])
    await expect(secure.locator("header .pill")).to_have_text("live")
    found = await secure.evaluate("async () => (await fetch('/api/picture')).json()")
    assert found["viewer"]["namespaces"] == [NAMESPACE]
    assert found["viewer"]["nodes"] is False
    assert "nodes" not in found or not found["nodes"]
    await secure.goto(f"{signed.address}#/workloads")
    await expect(secure.get_by_role("row").filter(has_text=SECOND).first).to_be_visible()


async def test_user_without_rights_sees_nothing(secure, tokens, signed):
    await sign_in(secure, tokens["stranger"])
    await expect(secure.locator("header .pill")).to_have_text("live")
    await secure.goto(f"{signed.address}#/workloads")
    await expect(secure.get_by_role("heading", level=1)).to_be_visible()
    await expect(secure.get_by_role("row")).to_have_count(0)
    body = await secure.locator("body").inner_text()
    assert NAME not in body.split()
    assert SECOND not in body.split()


@pytest.mark.parametrize("name", [NAME, SECOND])
async def test_link_to_hidden_workload_says_nothing_about_it(secure, tokens, signed, name):
    allow(secure, "404")
    await sign_in(secure, tokens["stranger"])
    await expect(secure.locator("header .pill")).to_have_text("live")
    hidden = await secure.evaluate(
        "async (name) => (await fetch(`/api/workload?namespace=default&name=${name}`)).status", name
    )
    missing = await secure.evaluate(
        "async () => (await fetch('/api/workload?namespace=default&name=missing')).status"
    )
    assert hidden == missing == 404


async def test_sign_out_forgets_everything(secure, tokens, signed):
    await sign_in(secure, tokens["admin"])
    await expect(secure.locator("header .pill")).to_have_text("live")
    await secure.goto(f"{signed.address}#/workloads")
    await expect(secure.get_by_role("row").filter(has_text=SECOND).first).to_be_visible()
    await secure.get_by_role("button", name="Sign out").click()
    await expect(secure.get_by_label("Bearer token")).to_be_focused()
    await expect(secure.get_by_text(SECOND)).to_have_count(0)
    await secure.reload()
    await expect(secure.get_by_label("Bearer token")).to_be_visible()
    assert await secure.context.cookies() == []


async def test_failed_sign_out_is_reported(secure, tokens):
    await sign_in(secure, tokens["admin"])
    await expect(secure.locator("header .pill")).to_have_text("live")
    allow(secure, "503")
    answer = {"status": 503, "json": {"error": "the dashboard stops"}}
    await secure.route("**/api/sign-out", lambda route: route.fulfill(**answer))
    await secure.get_by_role("button", name="Sign out").click()
    problem = "You are still signed in: the dashboard stops. Try again."
    await expect(secure.get_by_role("alert").filter(has_text=problem)).to_be_visible()
    await expect(secure.locator("header .pill")).to_have_text("live")


async def test_map_without_nodes_shows_domains_of_own_gangs(secure, tokens, signed):
    await sign_in(secure, tokens["tenant"])
    await expect(secure.locator("header .pill")).to_have_text("live")
    await expect(secure.get_by_text("You may not list nodes").first).to_be_visible()
    body = secure.get_by_role("main")
    for gang in (f"{NAME}-0", f"{SECOND}-0", f"{SECOND}-1"):
        await expect(body.get_by_role("link", name=gang).first).to_be_visible()
    await expect(body.get_by_text("z0-b1-r0-h0")).to_have_count(0)
    assert "foreign" not in await secure.locator(".reported").inner_text()


async def test_axe_finds_nothing_in_form(secure):
    found = await Axe().run(secure)
    assert found.violations_count == 0, found.generate_report()
