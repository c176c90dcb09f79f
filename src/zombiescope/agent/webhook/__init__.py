"""Alerts to a webhook, for people without Prometheus.

part.py      the section and the service
alert.py     an incident as an alert: labels, annotations, what it is called
messages.py  alerts as a message: Alertmanager's webhook, Alertmanager's API, Slack
outbox.py    what is still to be told: each incident once, at a bounded rate, over restarts
"""
