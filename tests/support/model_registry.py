"""A model in MLflow's registry with versions, and nights of a config that promotes them."""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tests.support.nights import write_config

QUERIES = [f"q{number:02}" for number in range(80)]


@dataclass(frozen=True)
class Registry:
    """A registered model."""

    uri: str
    name: str  # the model's name

    @property
    def client(self) -> Any:
        from mlflow import MlflowClient

        return MlflowClient(tracking_uri=self.uri)

    def fill(self, n_versions: int) -> None:
        experiment = self.client.create_experiment(f"training of {self.name}")
        self.client.create_registered_model(self.name)
        for _ in range(n_versions):
            model = self.client.create_logged_model(experiment, name="ranker")
            self.client.create_model_version(self.name, f"models:/{model.model_id}", model_id=model.model_id)

    def tags(self, version: int) -> Mapping[str, str]:
        return dict(self.client.get_model_version(self.name, str(version)).tags)

    def tag(self, version: int, key: str, value: str) -> None:
        """Set a tag of a version by hand."""
        self.client.set_model_version_tag(self.name, str(version), key, value)

    def move(self, version: int, alias: str = "champion") -> None:
        """Move the alias by hand."""
        self.client.set_registered_model_alias(self.name, alias, str(version))

    def holder(self, alias: str = "champion") -> int | None:
        aliases = self.client.get_registered_model(self.name).aliases
        return int(aliases[alias]) if alias in aliases else None


def write_output(folder: Path, date: str, model: str = "dense") -> None:
    """A night's output: half of the queries have their document at rank 1, half at rank 2, so their rr is 0.75."""
    lines = []
    for number, query_id in enumerate(QUERIES):
        ranking = [f"d{other}-{date}" for other in range(1, 4)]
        ranking.insert(number % 2, "d0")
        lines += [f"{query_id} Q0 {doc} 0 {-rank} x\n" for rank, doc in enumerate(ranking)]
    (folder / date).mkdir(exist_ok=True)
    (folder / date / f"{model}.txt").write_text("".join(lines), encoding="utf-8")


def write_nightly(folder: Path, registry: Registry, version: int = 1, **sections: Any) -> Path:
    """A config that promotes a version of the model if its reciprocal rank is 0.1 or more; gives its path."""
    (folder / "qrels.txt").write_text("".join(f"{query_id} 0 d0 1\n" for query_id in QUERIES), encoding="utf-8")
    dense = {
        "outputs": "{date}/dense.txt",
        "model_uri": f"models:/{registry.name}/{version}",
        "promote": {"model": f"models:/{registry.name}", "alias": "champion", "when": "gates_pass"},
    }
    floor = {"name": "floor", "models": ["dense"], "measure": "rr", "at_least": 0.1}
    config = {"models": {"dense": dense}, "gates": [floor], "tracking": {"uri": registry.uri}}
    return write_config(folder, **config | sections)
