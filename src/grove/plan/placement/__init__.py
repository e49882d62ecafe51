"""Which nodes the gangs of default-scheduler go to: what a gang asks for, and what is decided for it.

demand      what a gang asks: its units and pods, from the plan of its replica
decision    one gang after another, on an index of the cluster: an assignment, or why it waits
release     when the nominated pods of a gang may be scheduled
assignment  what the plan of the replica applies: pins, nominations, and the removal of gates
"""
