"""Every delay, limit and threshold of the operator, with its reason: the page to read before changing one.

Times are seconds and sizes are bytes, unless a name or comment says otherwise. A pair is the first and the
longest pause of a back-off. What an administrator sets is in `grove.api.configuration.types`; limits of what
users write are in `grove.api` and `grove.rules`. `make check` keeps such numbers here (`tools/constants.py`).
"""

from __future__ import annotations

# Work queue
WORKERS = 64  # keys in work at once: passes mostly wait for the API server
QUEUE_BACKOFF = (0.05, 60.0)  # a failed key: most causes pass at once, the others need a user
DETACHED_KEYS_PER_WORKER = 4  # keys that wait for a slow server without a worker: bounds their memory
CANCELLED_WORK_TIMEOUT = 1.0  # for cancelled work to clean up, before shutdown goes on without it
QUEUE_STOP_TIMEOUT = 5.0  # for work in progress at shutdown, if the caller gives no other time
STARTED_KEYS_IN_A_ROW = 7  # keys of sets that have begun, before one of a new set has its turn
OUTDATED_HEAP_ENTRIES = 64  # of the delay queue that are not worth a rebuild of the heap
LOGGED_TRACEBACKS = 1000  # causes whose traceback is logged once; beyond, each time: bounds the memory
FAN_OUT_SLICE = 256  # keys enqueued in one turn of the event loop: about a millisecond

# Plans
LARGE_PLAN = 500  # pods or replicas above which planning runs in a thread; up to here it takes about 20 ms
PLAN_THREAD_RETRY = 0.1  # until a key asks again for the busy thread of large plans
SNAPSHOT_BATCH = 64  # replicas of a large set that are read in one turn of the event loop
WRITES_PER_PASS = 2000  # the rest of a larger plan follows in the next pass, after those of other keys
AGGREGATION_DELAY = 0.2  # from a report of a replica to the status of its set: one pass for several reports
AGGREGATION_DELAY_PER_REPLICA = 0.00002  # more for large sets, whose aggregation takes longer

# Writes
WRITE_ATTEMPTS = 5  # of a write that the server certainly did not do
WRITE_LONGEST_PAUSE = 30.0  # even if the server asks for more: the plan would be outdated
WRITE_FIRST_TIMEOUT = 5.0  # of a write while the server is fast; it doubles where writes take longer
WRITE_LONGEST_TIMEOUT = 30.0  # the longest that a webhook may take
SLOW_WRITE = 1.0  # in flight, after which a write no longer occupies a slot of the fast ones
REPORTED_WRITE = 3.0  # in flight, after which the status of its set reports the write
UNKNOWN_WRITE_READS = 4  # attempts to read one object, before its key is requeued
UNKNOWN_WRITE_READ_TIMEOUT = 5.0  # of one such read: its key waits for it
UNKNOWN_WRITE_LONGEST_BACKOFF = 10.0  # until it is read again: no event reports that the server answers again
LATENCY_DECAY = 0.9  # of the timeout with each reply: it falls back to the first within twenty replies
LATENCY_FLOOR_GROWTH = 1.05  # of the lowest latency with each reply above it: follows within 100 replies
LATENCY_RECORDS = 4096  # verbs, resources and namespaces with a known latency; the oldest is removed
LIMITER_LONG_TERM_WEIGHT = 0.01  # of one reply in the usual latency: about the last hundred replies
LIMITER_RECENT_WEIGHT = 0.1  # of one reply in the recent latency: about the last ten
LIMITER_TOLERANCE = 2.0  # replies up to this many times slower than usual do not lower the limit
LIMITER_SMOOTHING = 0.1  # the part of each correction that is applied at once
LIMITER_USUAL_DECAY = 0.95  # how fast the usual latency falls when it stems from a time of high load
LIMITER_REJECTION_FACTOR = 0.5  # of the limit after a rejection
LIMITER_REJECTION_WINDOW = 0.1  # rejections within it count as one: the server shed them together
WRITES_BEFORE_A_STATUS = 7  # so many writes may overtake a status that waits; then it is sent

# Statuses and events
STATUS_QUIET_PERIOD = 0.25  # without a change of a status, before it is written
STATUS_UPDATE_QUIET_PERIOD = 1.0  # the same while an update replaces pods: the next ones are about to start
STATUS_MAX_QUIET_PERIOD = 10.0  # however many statuses are pending
STATUSES_PER_SECOND = 50  # the quiet period is as long as writing all pending statuses at this rate takes
STATUS_QUIET_PERIODS = 8  # times the quiet period, for a status that keeps changing
STATUS_MAX_DELAY = 20.0  # the longest that a status waits: users and autoscalers read it
STATUSES_PER_PASS = 1000  # a replica may have thousands of cliques
SCHEDULER_MESSAGE_FIRST_PAUSE = 2.0  # most gangs are scheduled by then, and the message is obsolete
WAITING_DELAY = 2.0  # that a reason for pods to wait must last: in a healthy start none does
SCHEDULER_MESSAGE_MAX_PAUSE = 60.0  # between two messages of a scheduler with other numbers
DROPPED_CONSTRAINTS_RETRY = 60.0  # until a PodGroup without its constraints is created again: two writes
SCHEDULER_MESSAGE_LENGTH = 500  # characters: some schedulers list every node
SCHEDULER_MESSAGE_READ = 2000  # characters that are searched: the owner of a pod can write any message
SCHEDULER_MESSAGES_KEPT = 256  # whose code is known without another search: pods of a gang have equal ones
CONDITION_MESSAGE_LENGTH = 4096  # characters: a status with more than 32,768 in one message is refused
UNDECODABLE_ERRORS_PER_SET = 8  # the status of a set has room for 16
NAMES_SHOWN = 3  # cliques, domains, nodes, shortages ... in one message, unless another limit is named
WRITES_NAMED = 10  # in the event about gangs that are deleted, or pods that are replaced, together
TOPOLOGY_USERS_NAMED = 20  # sets in the status of a topology
LEVEL_EXAMPLES = 3  # split domains in the status of a topology level
LEVEL_DOMAINS_NAMED = 3  # outer domains of one split domain
EVENT_SERIES_TIMEOUT = 360.0  # without a repetition, after which a series ends: as in client-go
EVENT_SERIES_INTERVAL = 30.0  # between two checks for series to end
EVENT_FLUSH_TIMEOUT = 0.5  # for queued events at shutdown, while the lease is still held
EVENT_CLOSE_TIMEOUT = 2.0  # the same, if the caller gives no other time
EVENT_WORKERS = 2  # events are less important than writes

# Watches
POD_STATUS_DELAY = 0.1  # the pods of a replica become ready one after another, and one pass is enough
BATCH_DELAY = 0.5  # changes that come in numbers and can wait: pods of a deleted set, statuses of others
BUSY_DELAY_PER_KEY = 0.02  # for each key that waits in the queue, before a starting replica is reconciled
MAX_BUSY_DELAY = 8.0  # however long the queue is: users watch their pods start
TOPOLOGY_USAGE_DELAY = 5.0  # nothing depends on the usage in the status of a topology: few writes
FREE_SLOTS_INTERVAL = 30.0  # between two counts for a topology: pods come and go all the time
QUOTA_CACHE_DELAY = 0.25  # until the API server's own cache of quotas has the change, too
QUOTA_RETRY_INTERVAL = 5.0  # between retries while other pods of the namespace come and go
PRIORITY_CLASS_DELAY = 5.0  # until a class that is not cached is missing: it may be created with its set
FABRIC_NODES_DELAY = 1.0  # nodes are added and removed in numbers, and listeners are called once for all
OPTIONAL_SYNC_TIMEOUT = 5.0  # for kinds that only some sets need; after that only those sets wait
SECRETS_SYNC_TIMEOUT = 5.0  # without the right to read Secrets their cache never syncs

# Caches
WATCH_IDLE_TIMEOUT = 150.0  # the server sends a bookmark every minute: a longer silence is a dead connection
LIST_IDLE_TIMEOUT = 20.0  # a server without streaming lists may never send the bookmark that ends the list
WATCH_LIFETIME = (300, 600)  # random between both, so that not all watches reconnect at the same time
REFLECTOR_BACKOFF = (0.1, 10.0)  # a watch that ended: most servers are back at once
INTERVENTION_BACKOFF = (0.5, 15.0)  # what changes only when a user acts: slow, but that user waits for it
BUG_BACKOFF = (1.0, 60.0)  # a bug is likely to happen again, and a list of everything is expensive
CRD_RECHECK = 600.0  # costs nothing, and notices an API server that was upgraded
LIST_PAGE = 500  # objects, as in client-go
COMPLETION_TIMEOUT = 2.0  # a user who waits longer for a completion types on
SCREEN_INTERVAL = 0.1  # between two frames of a live view: changes in between are in the next one
STATE_PAGE = 5_000  # objects, where a command reads the whole cluster once: few requests, some 20 MB each
BUNDLE_BYTES = 512 * 1024**2  # of the files of grove diagnostics, some 50,000 pods: more is of no help
BUNDLE_EVENTS = 20_000  # of grove diagnostics, the last ones: some 20 MB
BUNDLE_LOGS = 8  # pods of the operator whose logs grove diagnostics reads; it has two
BUNDLE_LOG_LINES = 20_000
BUNDLE_LOG_BYTES = 10 * 1024**2  # of one log, some 50,000 lines
INTERNED_VALUES = 1024  # many times what one second brings; a full pool is cleared
UNDECODABLE_TOKENS = 20_000  # a few milliseconds; metadata with larger managedFields are not read

# HTTP
CONNECT_TIMEOUT = 10.0  # a server that does not accept a connection by then is not reachable
REQUEST_TIMEOUT = 30.0  # of one request that is no watch
SERVER_STOP_TIMEOUT = 1.0  # for requests to our servers at shutdown
CONNECTION_IDLE_TIMEOUT = 60.0  # after which an unused connection is closed
HANDSHAKE_TIMEOUT = 5.0  # of TLS: the API server waits for our webhooks no longer, handshake included
REQUEST_HEAD_TIMEOUT = 5.0  # from the first byte of a request to the end of its head: usually one packet
RESPONSE_TIMEOUT = 10.0  # for a response to be read, after which its connection is closed
SERVER_KEEPALIVE = 75.0  # idle connections to probes and metrics: longer than the usual scrape interval of 60
TLS_SHUTDOWN_TIMEOUT = 1.0  # for the peer to confirm that a connection ends: a peer that does not is gone
ACCEPT_RETRY = 0.1  # until connections are accepted again, when the process has no file descriptors left
REFUSED_BODY_READ = 1.0  # a refused body is read for so long, so that its sender can read the answer
RECEIVE_BUFFER = 64 * 1024  # bytes of a connection in the kernel, and then in the process: 1,024 have 64 MiB
WEBHOOK_CONNECTIONS = 1024  # in all: with TLS about 45 KiB each, so 45 MiB
# The API servers are one peer where they come through a proxy (konnectivity) or a node's address. Together
# they rarely have more than 600 requests in flight (`--max-requests-inflight` and
# `--max-mutating-requests-inflight` of one server, 400 and 200), each with at most one connection to us.
WEBHOOK_CONNECTIONS_PER_PEER = 640
SERVER_CONNECTIONS = 64  # to probes and metrics: kubelets and Prometheus open one each
SERVER_CONNECTIONS_PER_PEER = 32  # one peer leaves room for the kubelet, whose probes restart the pod
ACCESS_GRANTED_KEPT = 60.0  # that a token may read metrics: one review for several scrapes
ACCESS_DENIED_KEPT = 10.0  # that it may not: rights that were just granted are effective soon
ACCESS_REVIEWS_KEPT = 256  # answers; the oldest is removed
ACCESS_REVIEWS_AT_ONCE = 4  # so that a peer that sends random tokens does not load the API server
ACCESS_REVIEW_TIMEOUT = 5.0  # for both reviews of a token, and for its turn
REFUSAL_LOG_INTERVAL = 60.0  # between two log lines about refused requests of one kind
REFUSAL_SHOWN = 200  # characters of what was wrong with them
MAX_RETRY_AFTER = 3600  # a longer Retry-After is shortened to this
RETRY_ATTEMPTS = 5  # of a request that is safe to repeat
RETRY_BACKOFF = (0.1, 10.0)  # between these attempts
RETRY_LONGEST_WAIT = 30.0  # a server that asks for more gets an error instead: the caller decides
MAX_REPLY_BODY = 1024**3  # a page of 500 objects has to fit, each as large as etcd accepts it: 1.5 MiB
STREAM_BUFFER = 128 * 1024  # bytes of a watch that are not read yet; the server waits until they are
MAX_REPLY_OVERHEAD = 64 * 1024  # of head, interim replies, chunk sizes; a head has less than 1 KiB
REPLY_BODY_PER_OVERHEAD = 8  # bytes of body that permit one more of overhead: chunks have 2 KiB and more
REPLY_SHOWN = 60  # characters of an invalid reply in the error
STREAM_OVERHEAD_PER_BODY = 8  # bytes of overhead for one of body: a log may be sent byte by byte
MAX_STATUS_REPLY = 1024**2  # of a rejection, so that an endless one ends
MAX_WATCH_LINE = 64 * 1024**2  # etcd accepts 1.5 MiB, and JSON escapes may make that six times as long

# Credentials and certificates
EXEC_PLUGIN_TIMEOUT = 30.0  # for a credential plugin: some ask the user or a remote service
CREDENTIAL_RENEWAL = 10.0  # before it expires, so that a request in flight is still accepted
SECRET_FILE_RECHECK = 1.0  # the kubelet replaces mounted tokens and certificates: not read for each request
CERTIFICATE_ATTEMPTS = 5  # to store the certificate while other replicas do the same
CERTIFICATE_PROPAGATION = 5.0  # until all API servers trust a new authority
CERTIFICATE_MAX_INTERVAL = 12 * 3600.0  # until the Secret is read again, in case another writer replaced it
CERTIFICATE_MIN_INTERVAL = 1.0  # between two passes, if another writer keeps changing the same fields
CONVERSION_INTERVAL = 1.0  # between two patches of a CRD, if another writer keeps changing its conversion
CERTIFICATE_BACKOFF = (1.0, 60.0)  # a failed pass: the certificate in use is valid for months
CERTIFICATE_ROTATION = 2 / 3  # of its lifetime, after which a certificate is replaced
AUTHORITY_LIFETIME_DAYS = 3650
SERVING_LIFETIME_DAYS = 365
CERTIFICATE_WARNING_DAYS = 14  # left of a CA, for grove doctor: the operator renews its own much earlier
CERTIFICATE_BACKDATED = 3600.0  # for API servers whose clock is behind

# Leases
LEASE_DURATION = 15.0  # as in controller-runtime: how long work pauses if the leader is lost
LEASE_RENEW_DEADLINE = 10.0  # after which a leader that cannot renew stops to write
LEASE_RETRY_PERIOD = 2.0  # between two renewals
LEASE_WATCH_LIFETIME = 300  # the watch of one lease
SHUTDOWN_GRACE = 2.0  # for work in progress, so that the process ends within five, the lease released

# Start and process
CRD_ATTEMPTS = 5  # to write a CRD that another replica writes, too
CRD_SERVED_TIMEOUT = 60.0  # a healthy API server needs less than a second
CRD_DISCOVERY_INTERVAL = 0.05  # between reads of discovery, which cannot be watched
FINALIZER_ATTEMPTS = 5  # to remove a finalizer from an object that changes meanwhile
DYNAMO_CONFLICT_BACKOFF = (1.0, 60.0)  # until it is known whether Dynamo's own operator runs
GC_THRESHOLDS = (100_000, 50, 100)  # of Python's garbage collector: our wire types have no cycles
STARTUP_BUCKETS = (0.1, 0.25, 0.5, 1, 2, 5, 10, 20, 30, 60, 120, 300, 600, 1800, 3600)  # of histograms
EVENT_LOOP_PAUSE_WINDOW = 60.0  # of the longest pause; a longer scrape interval may miss one

# Pods and restarts
CRASH_BACKOFF_FIRST = 10.0  # as the kubelet's, before a failed pod is replaced again
CRASH_BACKOFF_LONGEST = 300.0  # as the kubelet's
CRASH_BACKOFF_DOUBLINGS = 10  # more exceeds the longest back-off
CRASH_BACKOFF_RESET = 600.0  # after this long, a failure is not consecutive
CRASH_COUNT_DIGITS = 6  # the annotation can be edited, and large powers of two exhaust memory
TERMINATING_EXTRA_WAIT = 30.0  # past its deletion timestamp, a pod is on a lost node and not waited for
TOKEN_CLEANUP = 20.0  # Kubernetes deletes the token Secret of a deleted ServiceAccount within this time

# Init container
INIT_BACKOFF = (0.1, 5.0)  # after a watch that failed: pods start as soon as their dependencies are ready
INIT_TOKEN_BACKOFF = (0.05, 1.0)  # between two checks for the token that the kubelet mounts

# Order of pods
LARGER_PODS_WAITED_FOR = 64  # of a gang, before smaller ones are written: as many as are in flight at once

# Scale-in
SCALE_IN_POD_WAIT = 10.0  # that terminating pods delay other deletes: some have a grace period of an hour

# Gang termination
GANG_RESTARTS = 5  # in a row, after which a gang is not restarted, for a user to investigate
TERMINATION_MAX_DELAY_FACTOR = 16  # times the delay of the set, which doubles with each restart
PODS_IN_ANY_GANG = 4_000  # that a PodGang can always name, however long their names are

# Fabric
SUGGESTION_SIMILARITY = 0.7  # of an annotation to a misspelled one for which it is suggested; 1 is equal
ANNOTATION_WARNINGS = 20  # about one set: a set may have thousands of keys, and each is compared with all
UNSCHEDULABLE_WAIT = 60.0  # of pods, before the holders of channels are reported
CLAIM_TEMPLATE_WAIT = 30.0  # of a domain for its claim template, before the driver is reported
HELD_NODE_WAIT = 10.0  # of a pod on a node of another domain, before that is reported: labels arrive late
NODES_WITHOUT_CHANNEL_NAMED = 5  # in one log line

# Placement
PLACEMENT_LIST_CHECK = 1.0  # between checks whether rights are missing, while the cluster is not listed
PLACEMENT_START_LIMIT = (
    10.0  # for the replicas of existing gangs to report, when a process becomes the leader
)
INCOMPLETE_GANG_LIMIT = 30.0  # for a released gang none of whose pods is bound, before it starts over
HALF_BOUND_LIMIT = 3.0  # once some are: the scheduler tries again after 1 s and 2 s
FAILED_DOMAIN_DOUBLINGS = 10  # of that time: it is limited anyway
FAILED_DOMAIN_BACKOFF = (10.0, 300.0)  # until a gang is placed in the same domain again
NOMINATION_LIMIT = 5.0  # without a pod in flight that is bound, before a gang is nominated again
BACKLOG_LIMIT = 30.0  # for all pods in flight: others may delete pods one by one that no scheduler considers
SUCCESSOR_WAIT = 2.0  # for the round that places successors, before their predecessors are deleted without it
HOLD_LIMIT = 600.0  # for nodes that are held for one gang, before another gang may hold them
HOLD_SEARCHES = 16  # in one round, for gangs that differ: each takes 5 to 200 ms on 5,000 nodes
HOLD_DOMAINS = 8  # domains that are tried for a hold: those with the most free room
HELD_NODES_SHOWN = 3  # of those that are held for a gang, in the message of its condition
NOMINATION_RENEWAL = 5.0  # between renewals of nominations where a restart of the scheduler is not noticed
VERSION_RETRY = 10.0  # between attempts to read the version of the API server
PLACEMENT_INTERVAL = 0.2  # between rounds while gangs wait for nodes: many pods may end at once
LARGE_ROUND = 1_000  # nodes above which placement runs in a thread
PLACEMENT_WORK = 1_000_000  # nodes that are evaluated for one gang, in about half a second
PLACEMENT_ROUND_WORK = 2_000_000  # of one round, and of one gang in it; other gangs follow in the next rounds
PLACEMENT_JOINT_SHARE = 4  # of the work that is left: its part for a gang together with what follows it
PLACEMENT_RETRY = 30.0  # until a gang is searched for again whose search was stopped at the limit
PLACEMENT_RETRY_PAUSE = 60.0  # between two such searches of any gangs: other gangs wait meanwhile
PLACEMENT_RETRY_WORK = 10  # times the work, once the search for a gang was stopped: 5 to 7 s
PLACEMENT_IMPROVEMENT_WORK = 20_000  # of these, once a placement is found: about 10 ms
PLACEMENT_PARTITION_SHARES = 8  # choices of partitions that the work that is left is divided among
PLACEMENT_PACKED_DOMAINS = (
    32  # of a gang that get a partition each: every one is a kind of pods to the solver
)
PLACEMENT_UNIT_WORK = 60  # evaluations of a node that take as long as to read a unit of a gang
PLACEMENT_POD_WORK = 5  # and to read a pod
PLACEMENT_STEP_WORK = 20  # evaluations of a node that take as long as a step of the complete search
PLACEMENT_PROOF_WORK = 50_000  # of these, for the complete search before a gang is packed
PLACEMENT_PACKING_ROUNDS = (30, 1000)  # times that units of a gang are taken out and placed again, by domain
PLACEMENT_TRIALS = 3  # domains that are compared for a unit while a gang is packed
PLACEMENT_SPLITS = 4  # preferred domains that are tried for a unit that none of them holds
NODE_TERMS = 256  # of node affinity for one pod, with those of its volumes; further volumes do not count
PLACEMENT_SCORE_DIGITS = 4  # of the score in the status of a gang
FREE_SLOT_SIZES = (1, 8, 16, 32, 64)  # GPUs: one, a host, and what gangs of several hosts have
PLACEMENT_DOMAINS_SHOWN = 3  # of these, in the message of a condition
PREFERENCE_WEIGHT = 100  # of a preferred topology level among other preferences of a pod: the highest
PLACEMENT_DOMAINS_EXPLAINED = 4  # domains whose reasons are listed: those that come closest

# grove explain
WHAT_IF_WORK = 100_000  # of the solver, for each change that is tried: about 50 ms
WHAT_IF_DOMAINS = 8  # domains in which pods are tried to end: those with the most free room
NODES_TO_ADD = 1_000  # at most, of those that a gang is tried with
EXPLAINED_GANGS = 3  # gangs whose domains are listed: more than a screen is not read
EXPLAINED_REPLICAS = 20  # replicas that are planned for their reasons: some milliseconds each
EXPLAINED_ROWS = 8  # domains, pods, containers or events of one list

# grove status, grove events, grove logs
MOMENT = 60.0  # that a reason which is usual for a moment may last, before the workload counts as waiting
STATUS_REFRESH = 5.0  # without a change, of a live page: a Lease that is no longer renewed sends no event
STATUS_ROWS = 20  # gangs, roles or domains of one list: one page
EVENT_MESSAGE_WIDTH = 30  # columns of a message beside the other columns; with less it is on lines of its own
LOG_STREAMS = 50  # at once, unless the user permits more: each is a connection to the server and to a kubelet
LOG_TAIL = 10  # lines of each container, of several pods, unless the user asks for more: as kubectl
LOG_IDLE_TIMEOUT = 600.0  # of a log that is followed, before it is opened again: the connection may be dead
LOG_BACKOFF = (0.2, 10.0)  # until a log is opened again whose connection was lost
LOG_LINE = 1024**2  # bytes of a line, after which it is split: a container may never end one
LOG_BATCHES = 64  # of lines that wait to be printed; beyond, the servers wait

# Server of the dashboard
DASHBOARD_PORT = 8380  # of grove dashboard, unless it is in use
DASHBOARD_CONNECTIONS = 512  # in all: a browser opens six, and each page keeps one for its stream
DASHBOARD_CONNECTIONS_PER_PEER = 384  # users behind one proxy are one peer
DASHBOARD_STREAMS = 256  # at once: fewer than connections, so that pages can still be read
DASHBOARD_STREAMS_PER_TENANT = 128  # of all ServiceAccounts of a namespace: a tenant can make any number
DASHBOARD_STREAMS_PER_USER = 32  # of one user, or of one address without sign-in: teams share tokens
HEARTBEAT_INTERVAL = 10.0  # of a stream: a page shows within two of them that the server is away
STREAM_RETRY_MS = 2_000  # that a browser waits before it opens a lost stream again
STREAM_SEND_BUFFER = 256 * 1024  # bytes in the kernel for one stream, beside one delta in the process
COMPRESSED_ANSWER = 1_400  # bytes: what fits into one packet is not compressed
COMPRESSION_LEVEL = 3  # of gzip: a picture of 5,000 nodes in 10 ms, half the time of level 6, to 14 %
HSTS_SECONDS = 180 * 24 * 3600  # that a browser uses HTTPS only, after it has seen a trusted certificate
MAX_QUERY = 2_048  # bytes of a query string: two names of 253 characters, escaped
SIGN_IN_BODY = 64 * 1024  # bytes: tokens of some identity providers have 10 KiB
SIGN_IN_BODY_TIMEOUT = 5.0  # for it to arrive
API_RATE = (120, 30.0)  # requests at once and a second, of one user or address: a page opens with three
COSTLY_REQUEST = 3  # requests that a picture, stream, search or workload counts as: some take up to 30 ms
EXPLANATION_RATE = (6, 0.5)  # the same, of explanations: each may search for a second
EXPLANATIONS_AT_ONCE = 2  # of all users
EXPLANATIONS_WAITING = 8  # for these; beyond, they are refused
SIGN_IN_RATE = (10, 0.5)  # attempts of one address: users behind one proxy are one address
RATE_LIMITS_KEPT = 4_096  # senders whose rate is known; the oldest is dropped
SESSIONS = 1_024  # in memory; beyond, the one that was not used for longest ends
SESSIONS_PER_USER = 64  # teams share the token of a ServiceAccount
SESSIONS_PER_TENANT = 512  # of all ServiceAccounts of a namespace: a tenant can make any number
SESSION_LIFETIME = 12 * 3600.0  # a working day
SESSION_IDLE = 3600.0  # without a request and without an open page
RIGHTS_GRANTED_KEPT = 60.0  # that a user may list a kind: rights that are taken away end within this time
RIGHTS_DENIED_KEPT = 10.0  # that they may not: rights that were just granted are effective soon
RIGHTS_DENIED_KEPT_EACH = 0.1  # longer for each denied question: a user causes ten reviews a second at most
RIGHTS_USERS_KEPT = SESSIONS  # users whose answers are kept; the oldest is removed
TOKENS_KEPT = 2 * SESSIONS  # whose users are known: those of sessions, and those of clients without one
RIGHTS_REVIEWS_AT_ONCE = 8  # of all users: a review takes about a millisecond
RIGHTS_REVIEW_TIMEOUT = 10.0  # for all reviews of one user; a second attempt continues

# Pages of the dashboard
TIMELINE_ENTRIES = 200  # of one workload: some screens; single events of pods are left out first
TIMELINE_SAME = 5.0  # between a condition and an event that say the same: events have microseconds
TIMELINE_GROUP = 10.0  # in which the same happens to several pods or gangs, to be one entry
CONTAINER_PODS = 16  # pods whose containers are read for one page: a request each
EXPLAINER_KEPT = 60.0  # after its last use: of 20,000 pods it takes some hundred megabytes
EXPLANATIONS_KEPT = 64  # of one state of the cluster
NODE_PODS = 250  # of one node that are listed: a node has 110 by default
SEARCH_HITS = 20  # one screen
SHOWN_MESSAGE = 1_024  # characters of a message: the note of an event may have as many bytes, older ones any
SHOWN_NAME = 253  # characters of a name, kind, type or reason in an event: the longest name of an object
LONGEST_SEARCH = 320  # characters: a namespace and a name with a slash
LONGEST_YAML = 1024**2  # characters of an object that is shown: a page with more is slow to scroll

# Files of users
YAML_VALUES = 1_000_000  # of a file, with those that its aliases repeat: some hundred megabytes of memory
QUOTED_VALUE = 40  # characters of a wrong value that an error line quotes

# Plans of commands
DRY_ROUNDS = 20  # rounds of placement for one change: a gang is decided on, nominated and released in four
DRY_PASSES = 2_000  # passes over a set whose update is planned: one or two for each unit
SPREAD_WORK = 100_000  # pods times nodes, up to which a second run spreads pods as the scheduler may
PLANNED_REPLICAS = 4_096  # at most, of a set whose largest size is searched for

# Admission
WEBHOOK_TIMEOUT_SECONDS = 5  # a response takes a millisecond; longer waits are for a server that is gone
FACTS_READ_TIMEOUT = 2.0  # for one live read of a review: the API server waits for 5 for our response
FACTS_NAMES = 9  # that are looked up: the topologies of a set and of its eight fallbacks
FACTS_CLAIMS = 20  # claims that are looked up for one review
SELF_CHECK_TIMEOUT = 2.0  # for the operator's request to its own webhook
MAX_ANNOTATIONS = (
    256 * 1024
)  # bytes of an object's annotations, keys and values: the API server allows no more
MAX_PRESERVED = 128 * 1024  # bytes of a DynamoGraphDeployment in an annotation: others need some, too
MAX_REVIEW = 7 * 1024 * 1024  # two objects of the largest size that is stored, and the review around them
SMALL_REVIEW = 256 * 1024  # nearly all reviews have less; larger ones are computed in a thread, one by one
SMALL_REVIEW_VALUES = 5_000  # and so are reviews with more values: up to here, one takes some 10 ms
OBJECT_VALUES = 100_000  # of an object to review, which takes seconds then; what fits into etcd has fewer
REVIEW_BYTES = 4 * MAX_REVIEW  # of all bodies in memory; then the one is refused that arrives most slowly
REVIEW_BODY_TIMEOUT = 5.0  # for a body to arrive and have its turn: the API server waits no longer
REVIEW_KEEPALIVE = 120.0  # API servers close idle connections after 90, so the server never does first
MISSPELLED_KEY = 0.75  # similarity (difflib) of an unknown configuration key with a known one: `prot`, `port`
DEEP_VALUE_SCANNED = 64 * 1024  # bytes; the path of a deep value behind them is not reported
DEEP_VALUE_STEPS = 12  # of the path that are shown
DEEP_VALUE_STEP_LENGTH = 63  # characters of one step

# Dashboard
DASHBOARD_INTERVAL = 0.25  # in which changes are collected: many pods change at once
DASHBOARD_CHECK = 1.0  # between two looks at what changes without an event: Leases, connections, long waits
DASHBOARD_SLICE = 200  # summaries that are computed in one turn of the event loop: some 10 ms
DASHBOARD_LARGE_SET = 1_000  # pods, from which on a set is not summarized with every change of a pod
DASHBOARD_PAUSE_PER_POD = 0.0002  # until a large set is summarized again: that takes 10 us for each pod
DASHBOARD_CHANGES = 1_200  # that are kept for reconnects: five minutes of changes without a pause
DASHBOARD_CHANGED_PARTS = 100_000  # of all kept changes: some ten megabytes of memory
DASHBOARD_MISSED_PARTS = 5_000  # that a stream sends as one delta: merging them takes some 10 ms
DASHBOARD_CHANGED_BYTES = 16 * 1024**2  # of the same, as JSON: in memory they need a few times as much
DASHBOARD_EVENTS = 200  # of the operator, in a picture
DASHBOARD_EVENTS_PER_NAMESPACE = 100  # that are kept, so that a busy namespace does not hide those of others
DASHBOARD_EVENT_NAMESPACES = 500  # whose events are kept: all of them need up to 80 megabytes
DASHBOARD_TEMPLATES = 1_024  # of pods, whose GPUs are counted once
DASHBOARD_START = 15.0  # until a page is shown although not everything could be listed
DASHBOARD_EVENTS_AGE = 1.0  # of the events of a namespace that pages share: one may have tens of thousands
DASHBOARD_STATE_AGE = 5.0  # of the state that explanations share: reading it takes seconds in a large cluster
