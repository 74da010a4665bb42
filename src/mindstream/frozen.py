"""The base of immutable data models."""

from pydantic import BaseModel, ConfigDict


class Frozen(BaseModel):
    """A data model whose fields cannot be assigned."""

    model_config = ConfigDict(frozen=True)
