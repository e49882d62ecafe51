"""The script by which a vLLM worker waits for its leader, in an init container with the image of the engine.

It is the data of a ConfigMap: another text is an update of the ConfigMap of every running graph."""

from __future__ import annotations

SCRIPT = '''\
"""Wait until the leader of this replica runs and listens; LEADER_HOST and LEADER_PORT say where.

An address may still be that of a leader which is on its way out: the API server knows better. If it may not
be asked, a port that opens has to do.
"""

import json
import os
import socket
import ssl
import time
import urllib.error
import urllib.request

HOST, PORT = os.environ["LEADER_HOST"], int(os.environ["LEADER_PORT"])
ACCOUNT = "/var/run/secrets/kubernetes.io/serviceaccount"


def account(name):
    with open(f"{ACCOUNT}/{name}") as file:
        return file.read().strip()


def trouble(address):
    """Why the pod at an address cannot be the leader; empty if it can, or if nobody knows."""
    try:
        pods = f"/api/v1/namespaces/{account('namespace')}/pods?fieldSelector=status.podIP={address}"
        request = urllib.request.Request("https://kubernetes.default.svc" + pods)
        request.add_header("Authorization", "Bearer " + account("token"))
        trust = ssl.create_default_context(cafile=f"{ACCOUNT}/ca.crt")
        with urllib.request.urlopen(request, context=trust, timeout=5) as answer:
            found = json.load(answer).get("items") or []
    except (OSError, ValueError, urllib.error.URLError):
        return ""
    if not found:
        return f"no pod has the address {address}"
    if found[0]["metadata"].get("deletionTimestamp"):
        return f"the pod at {address} is on its way out"
    phase = found[0].get("status", {}).get("phase")
    return "" if phase == "Running" else f"the pod at {address} is {phase}"


def attempt():
    """Why the leader is not there yet; empty if it is."""
    try:
        address = socket.gethostbyname(HOST)
        if why := trouble(address):
            return why
        socket.create_connection((address, PORT), timeout=2).close()
    except OSError as problem:
        return str(problem)
    return ""


began = told = time.monotonic()
time.sleep(5)
while why := attempt():
    if time.monotonic() - told >= 30:
        told = time.monotonic()
        print(f"waiting for {HOST}:{PORT} for {told - began:.0f} s: {why}", flush=True)
    time.sleep(5)
print(f"{HOST}:{PORT} is there after {time.monotonic() - began:.0f} s", flush=True)
'''
