"""A trainer that prints which simulated GPUs it sees, one JSON line, reads its data to the end and then keeps its GPUs until
it is told to end."""
import json
import os
import signal

import headrace

signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGTERM})
print(json.dumps({"devices": {name: value for name, value in os.environ.items() if name.startswith("SIMULATED_")}}), flush=True)
steps = sum(1 for _ in headrace.connect())
print(json.dumps({"steps": steps}), flush=True)
signal.sigwait({signal.SIGTERM})
