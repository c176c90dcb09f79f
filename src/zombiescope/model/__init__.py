"""Values that several packages share: they are declared here once and change nothing."""
