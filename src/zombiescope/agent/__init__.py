"""The agent of a node: the recorder, and beside it what a platform asks of every node: metrics, alerts, shipping.

    __main__     the supervisor: starts recorder and services, starts them again, speaks to systemd; nothing else
    services     the services' own process; what happens in it never stops the recorder
    service      what a service is, and what it is given
    threads      the services in their threads: started again when they raise
    parts        the table of all services: section of the configuration, how it is made, which metrics it has
    config/      one YAML file, environment over it, mistakes with line and key, JSON schema
    metrics/     /metrics, /healthz and /readyz
    health       how each service is; heartbeat publishes it, as a part among those of the recorder
    node_parts   all parts on this node, and which of them make it unready; part_watch: their failures as news

docs/design/0042 says why there are three processes.
"""
