"""The gateway: the model endpoint on the host, and the only thing that a workspace can reach.

One process per run (`gateway.server`), started and ended by `gateway.client.Gateway`; one Unix socket per
case. It counts what each case asked for and got. Behind it is a provider (`gateway.relay`: chat/completions,
responses and messages pass through, with the key added here), the scripted model (`gateway.chat`,
`gateway.scripted`), which needs no network, or a recording (`gateway.replay`).
"""
