"""The command line: one module per subcommand. A command parses its options, asks recording/ or recorder/,
and prints."""
