"""Real processes in a storm: workers, servers, database and broker are killed, frozen and restarted at random."""
