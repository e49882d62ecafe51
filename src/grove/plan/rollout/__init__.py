"""Rolling updates: everything that decides about them.

replica_order   which replica of a set is updated, and whether a replica may be
set_update      what follows for the set: the write of that decision, events, counts
planner         the rollout of one replica: steps, and the members that they leave
steps           the next step of a clique or group
unit_state      its pods or replicas as units
units           which units are replaced next
budget          how many units may be down
progress        the progress in the status
deadline        by when it must progress
"""
