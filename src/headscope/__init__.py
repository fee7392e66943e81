"""headscope shows what each attention head of a transformer brings together.

Nothing heavy is imported here: torch and transformers come in when a model is loaded.
"""

from typing import TYPE_CHECKING, Any

__version__ = "0.1.0"
__all__ = ["__version__"]
