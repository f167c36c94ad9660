"""The page where people look: rendered here from templates, live by server-sent events, with no build of its own."""
