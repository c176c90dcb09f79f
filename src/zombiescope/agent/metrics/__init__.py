"""/metrics, /healthz and /readyz: what a Prometheus and a kubelet ask of a node.

part.py        the section, the services, the families
door.py        HTTP: who may ask, how long they may take, how many at once
pages.py       what is answered
exposition.py  the tally as OpenMetrics or Prometheus text
"""
