"""Answers for assistants: short documents whose facts have an id and a time, and a check of any claim about them.

server.py speaks the Model Context Protocol with the official SDK (extra `mcp`); everything else works without it.
"""
