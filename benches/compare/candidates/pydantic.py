"""Importing pydantic, which this library needs."""

from compare.candidates.candidate import Candidate as Base


class Candidate(Base):
    """Only ever imported."""

    def import_statement(self) -> str:
        return "import pydantic; pydantic.BaseModel"
