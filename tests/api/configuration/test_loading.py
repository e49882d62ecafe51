"""Loading and validating the operator's configuration file."""

from __future__ import annotations

import pytest

from grove.api.configuration import loading
from grove.api.configuration.loading import ConfigurationError, load
from grove.api.configuration.types import CertProvisionMode, LogLevel, OperatorConfiguration, SchedulerProfile


def test_empty_file_gives_defaults():
    config = load(None)
    assert config == OperatorConfiguration()
    assert (config.server.webhooks.port, config.server.health_probes.port, config.server.metrics.port) == (
        2750,
        2751,
        2752,
    )
    assert config.controllers.pod_clique.concurrent_syncs == 10
    assert config.controllers.pod_gang.concurrent_syncs == 5
    assert not config.network.auto_mnnvl_enabled
    assert config.network.explicit_compute_domains
    assert not config.topology_aware_scheduling.enabled
    assert not config.dynamo.enabled
    assert config.fabrics == ("nvidia",)
    assert config.dynamo.topology_aware_scheduling.allowed_domains == (
        "region",
        "zone",
        "datacenter",
        "block",
        "rack",
        "host",
        "numa",
    )


def test_chart_file_is_loaded():
    config = load(
        {
            "apiVersion": "operator.config.grove.io/v1alpha1",
            "kind": "OperatorConfiguration",
            "leaderElection": {"enabled": True, "leaseDuration": "30s", "renewDeadline": "20s"},
            "server": {"webhooks": {"port": 9443, "certProvisionMode": "manual"}},
            "logLevel": "debug",
            "network": {"autoMNNVLEnabled": True, "autoMNNVLDetectDRA": True},
            "topologyAwareScheduling": {"enabled": True},
            "scheduler": {"profiles": [{"name": "kai-scheduler", "config": {"queue": "a"}}]},
            "authorizer": {"exemptServiceAccountUserNames": ["system:kube-controller-manager"]},
            "somethingOfALaterVersion": {"a": 1},
        }
    )
    assert config.leader_election.lease_duration == "30s"
    assert config.leader_election.retry_period == "2s"
    assert config.server.webhooks.port == 9443
    assert config.server.webhooks.cert_provision_mode is CertProvisionMode.MANUAL
    assert config.log_level is LogLevel.DEBUG
    assert config.network.auto_mnnvl_enabled
    assert config.network.auto_mnnvl_detect_dra
    assert config.authorizer.exempt_service_account_user_names == ("system:kube-controller-manager",)
    assert config.scheduler.enabled_profiles == (
        SchedulerProfile("kai-scheduler", {"queue": "a"}),
        SchedulerProfile("default-scheduler"),
    )


def test_listed_default_scheduler_is_not_appended():
    config = load(
        {"scheduler": {"profiles": [{"name": "default-scheduler", "config": {"gangScheduling": True}}]}}
    )
    assert config.scheduler.enabled_profiles == (
        SchedulerProfile("default-scheduler", {"gangScheduling": True}),
    )


@pytest.mark.parametrize(
    ("network", "expected"),
    [({}, "preferred"), ({"packDomains": "required"}, "required"), ({"packDomains": False}, "off")],
    ids=["default", "chosen", "off as YAML reads it"],
)
def test_packing_of_domains_is_loaded(network, expected):
    assert load({"network": network}).network.pack_domains == expected


ELECTION = {"enabled": True}


@pytest.mark.parametrize(
    ("document", "message"),
    [
        ({"logLevel": "loud"}, 'logLevel: must be debug or info or error, not "loud"'),
        (
            {"network": {"autoMNNVLEnabled": "yes"}},
            'network.autoMNNVLEnabled: must be true or false, not "yes"',
        ),
        (
            {"network": {"packDomains": True}},
            "network.packDomains: must be off or preferred or required, not true",
        ),
        (
            {"server": {"webhooks": {"certProvisionMode": "hope"}}},
            'server.webhooks.certProvisionMode: must be auto or manual, not "hope"',
        ),
        ([], "the file: must be an object, not a list"),
        (
            {"kind": "Pod"},
            "kind: must be OperatorConfiguration of operator.config.grove.io/v1alpha1, not Pod of",
        ),
        ({"runtimeClientConnection": {"burst": -1}}, "runtimeClientConnection.burst: must not be negative"),
        (
            {"controllers": {"podCliqueScalingGroup": {"concurrentSyncs": 0}}},
            "controllers.podCliqueScalingGroup.concurrentSyncs: must be greater than 0",
        ),
        (
            {"leaderElection": {**ELECTION, "leaseDuration": "10s"}},
            "leaseDuration: must be greater than renewDeadline",
        ),
        (
            {"leaderElection": {**ELECTION, "retryPeriod": "0s"}},
            "leaderElection.retryPeriod: must be greater than 0",
        ),
        ({"leaderElection": {**ELECTION, "renewDeadline": "soon"}}, '"soon" is not a duration'),
        ({"leaderElection": {**ELECTION, "resourceName": ""}}, "leaderElection.resourceName: must be set"),
        (
            {"leaderElection": {**ELECTION, "retryPeriod": "10s"}},
            "leaderElection.renewDeadline: must be greater than retryPeriod",
        ),
        (
            {"leaderElection": {**ELECTION, "resourceLock": "endpoints"}},
            "leaderElection.resourceLock: must be leases, not endpoints",
        ),
        ({"server": []}, "server: must be an object, not a list"),
        ({"server": {"metrics": {"port": 65536}}}, "server.metrics.port: must be between 0"),
        (
            {"server": {"metrics": {"port": "2752"}}},
            'server.metrics.port: must be a whole number, not "2752"',
        ),
        ({"debugging": {"pprofBindPort": -1}}, "debugging.pprofBindPort: must be between 0"),
        ({"fabrics": "nvidia"}, 'fabrics: must be a list, not "nvidia"'),
        (
            {"scheduler": {"profiles": [{"name": "a", "config": 1}]}},
            "profiles[0].config: must be an object, not 1",
        ),
        ({"fabrics": ["nvidia", 1]}, "fabrics[1]: must be text, not 1"),
        (
            {"dynamo": {"topologyAwareScheduling": {"domainToLabelMapping": {"rack": 1}}}},
            "domainToLabelMapping[rack]: must be text, not 1",
        ),
        ({"scheduler": {"profiles": [{}]}}, "scheduler.profiles[0].name: must be set"),
        ({"scheduler": {"profiles": [{"name": ""}]}}, "scheduler.profiles[0].name: must be set"),
        (
            {"scheduler": {"profiles": [{"name": "volcano"}, {"name": "volcano"}]}},
            "scheduler.profiles[1].name: volcano is listed twice",
        ),
        (
            {"scheduler": {"defaultProfileName": "kai-scheduler"}},
            "scheduler.defaultProfileName: kai-scheduler is not one of the profiles",
        ),
    ],
)
def test_invalid_value_is_reported_in_one_line(document, message):
    with pytest.raises(ConfigurationError) as caught:
        load(document)
    assert message in str(caught.value)
    assert "\n" not in str(caught.value)


def test_all_problems_are_reported_at_once():
    with pytest.raises(ConfigurationError) as caught:
        load({"runtimeClientConnection": {"burst": -1}, "scheduler": {"defaultProfileName": "x"}})
    assert str(caught.value).count(";") == 1


def test_all_type_errors_are_reported_at_once():
    with pytest.raises(ConfigurationError) as caught:
        load(
            {
                "logLevel": 1,
                "server": {"metrics": {"port": "x"}},
                "scheduler": {"profiles": [{}, {"name": 2}]},
            }
        )
    assert [problem.partition(":")[0] for problem in caught.value.problems] == [
        "server.metrics.port",
        "logLevel",
        "scheduler.profiles[0].name",
        "scheduler.profiles[1].name",
    ]


def test_valid_key_is_not_compared_with_an_invalid_one():
    election = {"enabled": True, "leaseDuration": 30, "renewDeadline": "20s", "retryPeriod": "0s"}
    _, wrong = loading.check({"leaderElection": election})
    assert wrong == (
        "leaderElection.leaseDuration: must be text, not 30",
        "leaderElection.retryPeriod: must be greater than 0",
    )
    _, wrong = loading.check({"scheduler": {"profiles": [{"name": 1}], "defaultProfileName": "volcano"}})
    assert wrong == ("scheduler.profiles[0].name: must be text, not 1",)


UNKNOWN = {
    "logLevl": "debug",
    "later": {"key": 1},
    "server": {"metrics": {"prot": 1, "port": 2}},
    "scheduler": {
        "profiles": [
            {"name": "external", "config": {"queue": 1}, "nmae": "x"},
            {
                "name": "default-scheduler",
                "config": {"gangSchedulng": True, "defragment": {}, "schedulerLease": {"nme": "x"}},
            },
            {"name": "volcano", "config": {"gangScheduling": True}},
        ]
    },
    "dynamo": {"topologyAwareScheduling": {"domainToLabelMapping": {"rack": "example.com/rack"}}},
    "leaderElection": None,
}


def test_misspelled_keys_are_problems_at_every_depth():
    _, wrong = loading.check(UNKNOWN)
    config = "scheduler.profiles[1].config"
    assert wrong == (
        "logLevl: unknown key: did you mean logLevel?",
        "server.metrics.prot: unknown key: did you mean port?",
        "scheduler.profiles[0].nmae: unknown key: did you mean name?",
        f"{config}.gangSchedulng: unknown key: did you mean gangScheduling?",
        f"{config}.schedulerLease.nme: unknown key: did you mean name?",
    )


def test_misspelled_key_without_value_is_a_problem():
    _, wrong = loading.check({"limts": None, "server": {"webhoks": None}})
    assert [each.partition(":")[0] for each in wrong] == ["limts", "server.webhoks"]


def test_other_unknown_keys_are_found_at_every_depth():
    found = [(each.path, each.detail) for each in loading.unknown_keys(UNKNOWN, {"volcano"})]
    unknown = "unknown key: this version does not have it, remove it"
    assert found == [
        ("later", unknown),
        ("scheduler.profiles[1].config.defragment", unknown),
        ("scheduler.profiles[2].config.gangScheduling", "volcano has no settings: remove it"),
    ]
    assert list(loading.unknown_keys(None)) == []


@pytest.mark.parametrize("name", [["a"], {"x": 1}, None, 1])
def test_profile_with_a_wrong_name_is_searched_without_error(name):
    document = {"scheduler": {"profiles": [{"name": name, "config": {"a": 1}}]}}
    assert list(loading.unknown_keys(document, {"volcano"})) == []


def test_profiles_are_usable_in_a_wrong_document():
    profiles = [{"name": 1}, {"name": "a", "config": 1}, {"name": ""}, "x", {"name": "b", "config": {"c": 2}}]
    assert list(loading.usable_profiles({"scheduler": {"profiles": profiles}})) == [
        (1, SchedulerProfile("a")),
        (4, SchedulerProfile("b", {"c": 2})),
    ]
    for document in (None, [], {"scheduler": 1}, {"scheduler": {"profiles": {}}}):
        assert list(loading.usable_profiles(document)) == []


def test_key_without_value_gets_its_default():
    document = {"leaderElection": None, "server": {"metrics": {"port": None}}, "debugging": None}
    assert load(document) == OperatorConfiguration()


def test_disabled_leader_election_is_not_checked():
    assert list(loading.problems(load({"leaderElection": {"leaseDuration": "0s"}}))) == []
