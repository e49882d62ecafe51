"""The status of one object as data: its verdict, replicas, rollout, gangs, reasons and errors."""
