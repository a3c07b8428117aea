"""A fitted model as a web service: ``vicinal serve model.vicinal``."""

from vicinal.serve.model_source import ModelSource
from vicinal.serve.web_app import ServeSettings, create_app

__all__ = ["ModelSource", "ServeSettings", "create_app"]
