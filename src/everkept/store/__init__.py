"""Tables, statements and drivers: the only package that knows which database there is."""
