"""
Settings of the web tier and the workers. Everything comes from the environment, by the typed readers of env.py.

README.md, section Configuration, lists the variables.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

from csp.constants import NONCE, NONE, SELF, STRICT_DYNAMIC

from chatapp.addresses import check_ca_file, check_host, check_http_url, check_origin, check_proxy, unproxied
from chatapp.backup.switch import finish
from chatapp.databaseurl import of_file, of_url
from chatapp.env import (
    check_seen,
    optional_path,
    read_bool,
    read_choice,
    read_int,
    read_list,
    read_networks,
    read_path,
    read_secret,
    read_str,
)
from chatapp.loglevels import rate
from chatapp.redisurl import broker_url, check_redis_url, client_url
from chatapp.secretkey import kept_key
from chatapp.statefolder import keep_to_owner

BASE_DIR = Path(__file__).resolve().parent.parent
VAR = read_path("SIDESTREAM_VAR", BASE_DIR / "var")
# Before anything is written; the application tells it once it can.
STATE_WAS_OPEN = keep_to_owner(VAR)

# Trust

# A restore that was killed is finished before anything of the state is read: the key is the first.
finish(VAR)
_given_key = read_secret("SIDESTREAM_SECRET_KEY")
KEY_FILE = None if _given_key else VAR / "secret_key"
SECRET_KEY = _given_key or kept_key(VAR / "secret_key")
SECRET_KEY_FALLBACKS = [
    check_seen(key, "SIDESTREAM_SECRET_KEY_FALLBACKS") for key in read_list("SIDESTREAM_SECRET_KEY_FALLBACKS")
]
DEBUG = read_bool("SIDESTREAM_DEBUG")
ALLOWED_HOSTS = [
    check_host("SIDESTREAM_HOSTS", host) for host in read_list("SIDESTREAM_HOSTS", ["localhost", "127.0.0.1", "[::1]"])
]
# Full origins (https://chat.example.org) that may post and open sockets besides the page's own.
SIDESTREAM_ORIGINS = [check_origin("SIDESTREAM_ORIGINS", origin) for origin in read_list("SIDESTREAM_ORIGINS")]
CSRF_TRUSTED_ORIGINS = SIDESTREAM_ORIGINS
_ONLY_HTTPS = bool(SIDESTREAM_ORIGINS) and all(origin.startswith("https:") for origin in SIDESTREAM_ORIGINS)
HTTPS = read_bool("SIDESTREAM_HTTPS", _ONLY_HTTPS)
# Only behind a proxy that sets X-Forwarded-Proto itself; anyone else could claim to come by https.
TRUST_FORWARDED_PROTO = read_bool("SIDESTREAM_TRUST_FORWARDED_PROTO")
if TRUST_FORWARDED_PROTO:
    SECURE_PROXY_SSL_HEADER = ("HTTP_X_FORWARDED_PROTO", "https")
SECURE_SSL_REDIRECT = HTTPS and TRUST_FORWARDED_PROTO
SECURE_REDIRECT_EXEMPT = [r"^healthz$", r"^readyz$"]
SECURE_HSTS_SECONDS = 365 * 24 * 60 * 60 if HTTPS else 0
SESSION_COOKIE_SECURE = CSRF_COOKIE_SECURE = HTTPS
SESSION_COOKIE_HTTPONLY = CSRF_COOKIE_HTTPONLY = True
SESSION_COOKIE_SAMESITE = CSRF_COOKIE_SAMESITE = "Lax"
SESSION_ENGINE = "chatapp.sessions"
# Since it was used last. A guest's conversations are reachable by this cookie only.
SESSION_COOKIE_AGE = 365 * 24 * 60 * 60
SESSION_COOKIE_NAME = "sidestream_session"
CSRF_FAILURE_VIEW = "chatapp.views.problems.csrf_failure"
X_FRAME_OPTIONS = "DENY"
SECURE_REFERRER_POLICY = "same-origin"
# Subdomains and preload lists are for the owner of the domain to decide.
SILENCED_SYSTEM_CHECKS = ["security.W005", "security.W021"]
# These look for Django's own middleware by name; ours derives from it.
SILENCED_SYSTEM_CHECKS += ["security.W001", "security.W002", "security.W003"]
if not HTTPS:
    # HSTS, the redirect and secure cookies would lock people out of a server on plain http.
    SILENCED_SYSTEM_CHECKS += ["security.W004", "security.W008", "security.W010", "security.W016"]
elif not TRUST_FORWARDED_PROTO:
    # Django cannot tell https from http then, so the proxy redirects.
    SILENCED_SYSTEM_CHECKS += ["security.W008"]

CONTENT_SECURITY_POLICY: dict[str, Any] = {
    "DIRECTIVES": {
        "default-src": [NONE],
        "script-src": [NONCE, STRICT_DYNAMIC],
        "style-src": [SELF],
        "img-src": [SELF],
        "font-src": [SELF],
        "connect-src": [SELF],  # Covers ws: and wss: of the same host in every browser since 2022.
        "manifest-src": [SELF],
        "form-action": [SELF],
        "base-uri": [NONE],
        "frame-ancestors": [NONE],
        "require-trusted-types-for": ["'script'"],
        "trusted-types": ["server-html"],
    }
}
# The admin's scripts carry no nonces and write HTML, so its pages have a policy of their own.
ADMIN_CONTENT_SECURITY_POLICY: dict[str, Any] = {
    "default-src": [NONE],
    "script-src": [SELF],
    "style-src": [SELF],
    "img-src": [SELF, "data:"],
    "font-src": [SELF],
    "connect-src": [SELF],
    "form-action": [SELF],
    "base-uri": [NONE],
    "frame-ancestors": [NONE],
}

# Application

ROOT_URLCONF = "chatapp.urls"
ASGI_APPLICATION = "chatapp.asgi.application"
INSTALLED_APPS = [
    "chatapp.apps.ChatappConfig",
    "chatapp.apps.OperatorConfig",
    "django.contrib.auth",
    "django.contrib.contenttypes",
    "django.contrib.sessions",
    "django.contrib.messages",
    "django.contrib.staticfiles",
    "csp",
]
# Every one of them runs in both worlds: a sync-only middleware would take a thread for each open
# stream and put the stream behind it. No compression: it would hold events back.
MIDDLEWARE = [
    "chatapp.middleware.let_bodies_go",
    "chatapp.middleware.Security",
    "chatapp.middleware.static_files",
    "chatapp.middleware.Csp",
    "chatapp.middleware.Sessions",
    "chatapp.middleware.Common",
    "chatapp.middleware.Csrf",
    "chatapp.middleware.Authentication",
    "chatapp.middleware.Messages",
    "chatapp.middleware.XFrameOptions",
]
TEMPLATES = [
    {
        "BACKEND": "django.template.backends.django.DjangoTemplates",
        "DIRS": [BASE_DIR / "templates"],
        "APP_DIRS": True,
        "OPTIONS": {
            "context_processors": [
                "django.template.context_processors.request",
                "django.contrib.auth.context_processors.auth",
                "django.contrib.messages.context_processors.messages",
            ]
        },
    }
]
LOGIN_URL = "login"
LOGIN_REDIRECT_URL = LOGOUT_REDIRECT_URL = "index"
AUTH_PASSWORD_VALIDATORS = [
    {"NAME": f"django.contrib.auth.password_validation.{name}"}
    for name in ("UserAttributeSimilarityValidator", "MinimumLengthValidator", "CommonPasswordValidator")
]
LANGUAGE_CODE = "en"
TIME_ZONE = "UTC"
USE_TZ = True
DEFAULT_AUTO_FIELD = "django.db.models.BigAutoField"
# How long an open connection may go on after its right to the conversation is gone.
STREAM_RECHECK_S = 60.0
DATA_UPLOAD_MAX_MEMORY_SIZE = 1024 * 1024

# Static files: served from where they lie, so that there is no step before the first start.

STATIC_URL = "/static/"
STATICFILES_DIRS = [BASE_DIR / "static"]
# Only for those who let a web server serve the files, and run collectstatic.
STATIC_ROOT = optional_path("SIDESTREAM_STATIC_ROOT")
# That server may run as another user, and these files are no secret.
FILE_UPLOAD_PERMISSIONS = 0o644
FILE_UPLOAD_DIRECTORY_PERMISSIONS = 0o755
WHITENOISE_USE_FINDERS = True
WHITENOISE_MAX_AGE = 60
WHITENOISE_ALLOW_ALL_ORIGINS = False


# Storage

_DATABASE_URL = read_str("DATABASE_URL")
_DATABASE = of_url("DATABASE_URL", _DATABASE_URL, BASE_DIR) if _DATABASE_URL else of_file(VAR / "sidestream.sqlite3")
DATABASES = {"default": _DATABASE}

REDIS_URL = client_url(check_redis_url("REDIS_URL", read_str("REDIS_URL", "redis://127.0.0.1:6379/0")))
MODELS_FILE = read_path("MODELS_FILE", BASE_DIR / "chatapp" / "models.toml")

# The way to model services. The environment's proxies count only if SIDESTREAM_PROXY says so.

_CA_FILE = optional_path("SIDESTREAM_CA_FILE")
CA_FILE = check_ca_file("SIDESTREAM_CA_FILE", _CA_FILE) if _CA_FILE else None
_PROXY = read_str("SIDESTREAM_PROXY")
PROXIES = check_proxy("SIDESTREAM_PROXY", _PROXY, os.environ)
NO_PROXY = read_list("SIDESTREAM_NO_PROXY") or unproxied(_PROXY, os.environ)
# Read again by those who use them; here, so that a mistake is told at the start.
read_bool("SIDESTREAM_DISCOVER", True)
if LLAMACPP_URL := read_str("SIDESTREAM_LLAMACPP_URL"):
    check_http_url("SIDESTREAM_LLAMACPP_URL", LLAMACPP_URL)

# Generations

CELERY_BROKER_URL = broker_url(check_redis_url("SIDESTREAM_BROKER_URL", read_str("SIDESTREAM_BROKER_URL", REDIS_URL)))
# How many generations one worker process drives at once; each waits in a thread of its own.
WORKER_STREAMS = read_int("SIDESTREAM_WORKER_STREAMS", 100, minimum=1, maximum=10_000)
# How long a worker that was told to stop lets its generations go on.
DRAIN_GRACE_S = read_int("SIDESTREAM_DRAIN_GRACE_S", 30, minimum=0)

# What one owner may take, over all web processes; 0 means as much as they like.
MAX_RUNNING = read_int("SIDESTREAM_MAX_RUNNING", 16, minimum=0)
MAX_STREAMS = read_int("SIDESTREAM_MAX_STREAMS", 32, minimum=0)
PROMPTS_PER_MINUTE = read_int("SIDESTREAM_PROMPTS_PER_MINUTE", 30, minimum=0)
CONVERSATIONS_PER_MINUTE = read_int("SIDESTREAM_CONVERSATIONS_PER_MINUTE", 20, minimum=0)

# Celery takes a message early: what it says is in the database already, and messages may come twice
# or never. Results and retries are not its business here.
CELERY_TASK_IGNORE_RESULT = True
# Else each of its threads makes a backend of its own, which reads the metadata of every installed package.
CELERY_RESULT_BACKEND_THREAD_SAFE = True
CELERY_TASK_ACKS_LATE = False
CELERY_TASK_DEFAULT_QUEUE = "generations"
CELERY_WORKER_POOL = "threads"
CELERY_WORKER_CONSUMER = "chatapp.broker:Consumer"
CELERY_WORKER_CONCURRENCY = WORKER_STREAMS
CELERY_WORKER_PREFETCH_MULTIPLIER = 1
CELERY_WORKER_DISABLE_PREFETCH = True  # A full worker leaves the next generation to an idle one.
CELERY_WORKER_HIJACK_ROOT_LOGGER = False
CELERY_WORKER_REDIRECT_STDOUTS = False
CELERY_BROKER_CONNECTION_RETRY_ON_STARTUP = True
CELERY_BROKER_CONNECTION_MAX_RETRIES = None  # Its default gives up after 100.
# A Redis that refuses a command, as one that became a replica or cannot write its files, may take the next one; to end
# for it would end every answer that the worker drives.
CELERY_BROKER_CHANNEL_ERROR_RETRY = True
CELERY_BROKER_TRANSPORT_OPTIONS = {"socket_keepalive": True, "health_check_interval": 10}

# Who may read /metrics: whoever has the token, or comes from these addresses. With a token, only it counts
# unless addresses are named too.
METRICS_TOKEN = read_secret("SIDESTREAM_METRICS_TOKEN")
METRICS_FROM = read_networks("SIDESTREAM_METRICS_FROM", [] if METRICS_TOKEN else ["127.0.0.1", "::1"])

# `manage.py up` asks /readyz and tells of each change; the web process need not say it again.
WATCHED = read_bool("SIDESTREAM_WATCHED")

LOG_LEVELS = ("DEBUG", "INFO", "WARNING", "ERROR", "CRITICAL")
LOGGING: dict[str, Any] = {
    "version": 1,
    "disable_existing_loggers": False,
    "formatters": {"line": {"()": "chatapp.logline.OneLine", "format": "%(levelname)s %(name)s: %(message)s"}},
    "filters": {"rate": {"()": "django.utils.log.CallbackFilter", "callback": rate}},
    "handlers": {"console": {"class": "logging.StreamHandler", "formatter": "line", "filters": ["rate"]}},
    "root": {"handlers": ["console"], "level": read_choice("SIDESTREAM_LOG_LEVEL", "INFO", LOG_LEVELS)},
    "loggers": {
        "django": {"handlers": [], "propagate": True},
        "django.server": {"handlers": [], "propagate": True},
        # What a client got wrong is told to the client; only what went wrong here is logged.
        "django.request": {"level": "ERROR"},
        # httpx logs each request's address, which may hold what an operator wrote there.
        "httpx": {"level": "WARNING"},
    },
}
