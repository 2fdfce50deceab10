"""
`manage.py up`: start, supervise and stop together what the settings do not already point at.

It is a small asyncio program of our own. Process managers from the shelf were looked at: honcho ends
everything when one process ends and knows no readiness; circus and supervisord restart, but need
configuration files, a control port or a daemon, and wait for no health check before the next start.

Bottom up: refusal, backoff, lines, surroundings (pure) · console · service · child (one process) · keeper (one
service) · supervisor (all) · probes, grounds (what this machine offers) · redis_formats (pure), redis_files,
redis_server, redis_trial (a private Redis, and the files of the last one) · stack (which services Sidestream is
made of).
"""
