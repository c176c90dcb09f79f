"""What a command prints as JSON and the page's interface answers: one module per document, made in one place."""
