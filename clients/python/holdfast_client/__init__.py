"""A typed client for Holdfast's API: one server's calls by an API token, and the check of its webhooks."""

from holdfast_client.calls import Holdfast
from holdfast_client.client import HoldfastError
from holdfast_client.webhooks import SeenDeliveries, WebhookRefused, WebhookRepeated, verify_webhook

__all__ = ["Holdfast", "HoldfastError", "SeenDeliveries", "WebhookRefused", "WebhookRepeated", "verify_webhook"]
