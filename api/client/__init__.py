"""What `tollkeeper.client` is made of."""
