"""The interface described: an operation's words and shapes, and the OpenAPI document made of them."""
