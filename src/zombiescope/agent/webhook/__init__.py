"""Alerts to a webhook, for people without Prometheus.

part.py      the section and the service, and what is still to be sent: each incident once, over restarts
alert.py     an incident as an alert: labels, annotations, what it is called
messages.py  alerts as a message: Alertmanager's webhook, Alertmanager's API, Slack
"""
