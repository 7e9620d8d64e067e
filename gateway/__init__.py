"""The gateway: the model endpoint on the host, and the only thing that a workspace can reach.

One process per run (`gateway.server`), started and ended by `gateway.client.Gateway`; one Unix socket per
case. It speaks OpenAI's chat/completions and counts what each case asked for and got. Behind it is the
scripted model (`gateway.scripted`), which needs no network.
"""
