"""For tests of controllers: virtual time and a transport that injects faults."""
