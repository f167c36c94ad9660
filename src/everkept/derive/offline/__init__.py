"""What is derived where no model is: only what can be quoted, and no pretence of more."""
