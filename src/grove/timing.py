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
STATUS_MAX_QUIET_PERIOD = 10.0  # however many statuses are pending
STATUSES_PER_SECOND = 100  # the quiet period is as long as writing all pending statuses at this rate takes
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
DELETED_GANGS_NAMED = 10  # in the event about gangs that are deleted together
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
SCREEN_INTERVAL = 0.1  # between two frames of a live view: changes in between are in the next one
STATE_PAGE = 5_000  # objects, where a command reads the whole cluster once: few requests, some 20 MB each
INTERNED_VALUES = 1024  # many times what one second brings; a full pool is cleared
UNDECODABLE_TOKENS = 20_000  # a few milliseconds; metadata with larger managedFields are not read

# HTTP
CONNECT_TIMEOUT = 10.0  # a server that does not accept a connection by then is not reachable
REQUEST_TIMEOUT = 30.0  # of one request that is no watch
SERVER_STOP_TIMEOUT = 1.0  # for requests to our servers at shutdown
CONNECTION_IDLE_TIMEOUT = 60.0  # after which an unused connection is closed
MAX_RETRY_AFTER = 3600  # a longer Retry-After is shortened to this
RETRY_ATTEMPTS = 5  # of a request that is safe to repeat
RETRY_BACKOFF = (0.1, 10.0)  # between these attempts
RETRY_LONGEST_WAIT = 30.0  # a server that asks for more gets an error instead: the caller decides
MAX_REPLY_BODY = 1024**3  # a page of 500 objects has to fit, each as large as etcd accepts it: 1.5 MiB
STREAM_BUFFER = 128 * 1024  # bytes of a watch that are not read yet; the server waits until they are
MAX_REPLY_OVERHEAD = 64 * 1024  # of head, interim replies, chunk sizes; a head has less than 1 KiB
REPLY_BODY_PER_OVERHEAD = 8  # bytes of body that permit one more of overhead: chunks have 2 KiB and more
REPLY_SHOWN = 60  # characters of an invalid reply in the error
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
CERTIFICATE_BACKOFF = (1.0, 60.0)  # a failed pass: the certificate in use is valid for months
CERTIFICATE_ROTATION = 2 / 3  # of its lifetime, after which a certificate is replaced
AUTHORITY_LIFETIME_DAYS = 3650
SERVING_LIFETIME_DAYS = 365
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
UNSCHEDULABLE_WAIT = 60.0  # of pods, before the holders of channels are reported
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
NOMINATION_LIMIT = 5.0  # for pods in flight to be bound, before a gang is nominated again
HOLD_LIMIT = 600.0  # for nodes that are held for one gang, before another gang may hold them
HOLD_SEARCHES = 16  # in one round, for gangs that differ: each takes 5 to 200 ms on 5,000 nodes
HOLD_DOMAINS = 8  # domains that are tried for a hold: those with the most free room
HELD_NODES_SHOWN = 3  # of those that are held for a gang, in the message of its condition
NOMINATION_RENEWAL = 5.0  # between renewals of nominations where a restart of the scheduler is not noticed
VERSION_RETRY = 10.0  # between attempts to read the version of the API server
PLACEMENT_INTERVAL = 0.2  # between rounds while gangs wait for nodes: many pods may end at once
LARGE_ROUND = 1_000  # nodes above which placement runs in a thread
PLACEMENT_WORK = 1_000_000  # nodes that are evaluated for one gang, in about half a second
PLACEMENT_RETRY = 30.0  # until a gang is searched for again whose search was stopped at the limit
PLACEMENT_RETRY_WORK = 10  # times that, once the search for a gang was stopped at the limit
PLACEMENT_IMPROVEMENT_WORK = 20_000  # of these, once a placement is found: about 10 ms
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
NODES_TO_ADD = 1_000  # at most, of those that a gang is tried with
EXPLAINED_GANGS = 3  # gangs whose domains are listed: more than a screen is not read
EXPLAINED_REPLICAS = 20  # replicas that are planned for their reasons: some milliseconds each
EXPLAINED_ROWS = 8  # domains, pods, containers or events of one list

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
MAX_REVIEW = 7 * 1024 * 1024  # two objects of the largest size that is stored, and the review around them
SMALL_REVIEW = 256 * 1024  # nearly all reviews have less
LARGE_REVIEWS_AT_ONCE = 8  # so that memory is bounded
REVIEW_BODY_TIMEOUT = 5.0  # for a body to arrive
REVIEW_KEEPALIVE = 120.0  # API servers close idle connections after 90, so the server never does first
MISSPELLED_KEY = 0.75  # similarity (difflib) of an unknown configuration key with a known one: `prot`, `port`
DEEP_VALUE_SCANNED = 64 * 1024  # bytes; the path of a deep value behind them is not reported
DEEP_VALUE_STEPS = 12  # of the path that are shown
DEEP_VALUE_STEP_LENGTH = 63  # characters of one step
