"""The parts of `tollkeeper.client`."""
