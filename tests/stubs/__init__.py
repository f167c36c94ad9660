"""Stand-ins for what lies outside: tiny servers with a script and a log."""
