"""Records in an object store that the config names, which every command finds by the name of the evaluation."""

import json
import shutil

from tests.support.commands import run_cli
from tests.support.generated_data import search_collection, write_config

__all__ = ["run_cli"]


def test_commands_read_the_object_store_of_the_config(run_cli, s3, tmp_path):
    data = {"web": search_collection(3, n_queries=6)}
    place = f"{s3.bucket()}/records"
    write_config(tmp_path, data, {"search": ["ap"]}, report=False, records=place, name="places")
    assert run_cli("evaluate", "config.yaml", "--no-tracking").code == 0
    shutil.rmtree("runs")

    for command in (["list"], ["list", "--name", "places"], ["list", "--records", "config.yaml"]):
        listed = json.loads(run_cli(*command, "--json").out)
        assert listed["place"] == place
        assert len(listed["evaluations"]) == 1
    for command in (
        ["history"],
        ["show", "places"],
        ["site", "--output", "site"],
        ["accept", "last", "--config", "config.yaml", "--reason", "fine"],
        ["verify", "last", "--no-tracking"],
        ["sync"],
    ):
        outcome = run_cli(*command)
        assert (outcome.code, outcome.err) == (0, "")


def test_an_object_store_that_is_away_is_said_and_the_rest_is_done(run_cli, s3, tmp_path, monkeypatch):
    data = {"web": search_collection(3, n_queries=6)}
    place = f"{s3.bucket()}/records"
    write_config(tmp_path, data, {"search": ["ap"]}, report=False, records=place, name="places")
    assert run_cli("evaluate", "config.yaml", "--no-tracking").code == 0
    monkeypatch.setenv("AWS_ENDPOINT_URL", "http://127.0.0.1:9")

    for command in (["list"], ["history"], ["show", "places"], ["accept", "places", "--reason", "fine"]):
        outcome = run_cli(*command)

        assert outcome.code == 0
        (line,) = outcome.err.splitlines()
        assert line.startswith(f"{place}: ")
        assert line.endswith("Only the records in runs/records are used. Check the place.")
