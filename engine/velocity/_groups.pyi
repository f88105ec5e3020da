from tollkeeper.engine.velocity.groups import Clock as Clock
from tollkeeper.engine.velocity.groups import Groups as Groups
from tollkeeper.engine.velocity.groups import Queue as Queue
