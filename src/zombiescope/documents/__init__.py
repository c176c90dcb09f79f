"""What is answered: one module per view. `answer(recording, question)` makes it for the command line and for the web;
questions/ holds what may be asked. Where a face draws a picture the answer is a small object that holds what is drawn,
and `document()` and `columns()` are what is printed as JSON and sent to the page."""
