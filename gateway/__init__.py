"""The gateway: the model endpoint on the host, and the only thing that a workspace can reach.

One process per run (`gateway.server`), started and ended by `gateway.client.Gateway`; one Unix socket per case. It
counts what each case requests and receives. Behind it is a provider (`gateway.relay`: requests in chat/completions,
responses and messages pass through, and the key is added), the scripted model (`gateway.scripted_handler`), which
needs no network, or a recording (`gateway.replay`).
"""
