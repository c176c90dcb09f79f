"""What else this node says, one subpackage per authority: systemd, container runtimes, the Kubernetes API, Ray."""
