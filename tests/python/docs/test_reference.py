"""Holds docs/python-api.md against the package: every public name, signature, field and default."""

import inspect
import re
from pathlib import Path

import pytest
from pydantic import BaseModel

import dataset_rt as drt
from dataset_rt import api

PAGE = (Path(__file__).parents[3] / "docs" / "python-api.md").read_text(encoding="utf-8")
METHODS = [
    (owner, name)
    for owner in (drt.DatasetRuntime, drt.CachedDataset)
    for name, member in vars(owner).items()
    if inspect.isfunction(member) and not name.startswith("_")
]
TUPLES = [value for value in vars(api).values() if hasattr(value, "_fields")]
CONFIGS = [value for value in vars(api).values() if isinstance(value, type) and issubclass(value, BaseModel)]


def shape(function: object) -> str:
    """Parameters of a signature as the page writes them, for example `(a, *, b=...)`."""
    signature = inspect.signature(function)  # type: ignore[arg-type]
    parts: list[str] = []
    for parameter in signature.parameters.values():
        if parameter.name == "self":
            continue
        if parameter.kind is inspect.Parameter.KEYWORD_ONLY and "*" not in parts:
            parts.append("*")
        parts.append(parameter.name if parameter.default is inspect.Parameter.empty else f"{parameter.name}=...")
    return f"({', '.join(parts)})"


@pytest.mark.parametrize("name", sorted({*drt.__all__, *api.__all__}))
def test_a01_page_names_every_public_name(name: str) -> None:
    assert re.search(rf"(?<!\w){name}(?!\w)", PAGE)


@pytest.mark.parametrize(("owner", "name"), METHODS, ids=lambda value: getattr(value, "__name__", value))
def test_a01_page_shows_the_signature_of_every_method(owner: type, name: str) -> None:
    assert f"`{name}{shape(getattr(owner, name))}`" in PAGE


@pytest.mark.parametrize("kind", TUPLES, ids=lambda kind: kind.__name__)
def test_a02_page_shows_the_fields_of_every_named_tuple(kind: type) -> None:
    assert f"`{kind.__name__}({', '.join(kind._fields)})`" in PAGE


@pytest.mark.parametrize("config", CONFIGS, ids=lambda config: config.__name__)
def test_a02_page_shows_every_field_and_default_of_a_configuration(config: type[BaseModel]) -> None:
    (_, section) = PAGE.split(f"\n### {config.__name__}\n")
    rows = dict(re.findall(r"^\| `(\w+)` \| (.+?) \|", section.split("\n#")[0], re.MULTILINE))
    expected = {
        name: "required" if field.is_required() else f"`{written(field.default)}`"
        for name, field in config.model_fields.items()
    }
    assert rows == expected


def written(default: object) -> str:
    """A default as the page writes it."""
    if isinstance(default, BaseModel):
        return f"{type(default).__name__}()"
    return str(default) if isinstance(default, Path) else repr(default)
