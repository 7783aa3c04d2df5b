"""Credentials: what is recorded or shown has none, and what only looks like one stays."""

import pytest

from rankledger.pipeline.support.text import has_credentials, public_uri, without_credentials


@pytest.mark.parametrize(
    ("written", "shown"),
    [
        ("http://ann:s3cret@mlflow.example", "http://mlflow.example"),
        ("http://ann:s3cret@mlflow.example:5000/api", "http://mlflow.example:5000/api"),
        ("https://s3cret@mlflow.example/", "https://mlflow.example/"),
        ("https://:s3cret@mlflow.example/", "https://mlflow.example/"),
        ("postgresql+psycopg2://ann:s3cret@db.example:5432/mlflow", "postgresql+psycopg2://db.example:5432/mlflow"),
        ("http://ann:s3cret/9@mlflow.example:5000/api", "http://mlflow.example:5000/api"),
        ("http://ann:s3@cret@mlflow.example", "http://mlflow.example"),
        ("http://ann:s3%2Fcret@[::1]:5000/", "http://[::1]:5000/"),
    ],
)
def test_a_uri_is_shown_without_user_and_password(written, shown):
    """Host, port and path stay, alone and in a sentence."""
    assert public_uri(written) == shown
    assert without_credentials(f"--set a={written} b") == f"--set a={shown} b"
    assert without_credentials(f'"{written}"') == f'"{shown}"'
    assert without_credentials(f"{written} {written}") == f"{shown} {shown}"


@pytest.mark.parametrize(
    "text",
    [
        "",
        "rankledger evaluate configs/nightly.yaml --date 2026-11-20",
        "http://mlflow.example:5000/",
        "http://mlflow.example:5000/of/ann@example.org",
        "s3://bucket/outputs@night/bm25.tsv",
        "s3://bucket/a:b/c@d.tsv",
        "sqlite:////runs/mlflow.db",
        "abfs://eval@ledger.dfs.core.windows.net/web",
        "gs://anonymous@eval/web",
        "ann@example.org asks: http://mlflow.example?",
    ],
)
def test_what_holds_no_credentials_stays_as_it_is(text):
    assert without_credentials(text) == text


@pytest.mark.parametrize("uri", ["sqlite:////runs/ann@home/mlflow.db", "file:///runs/ann@home", "runs/ann@home"])
def test_a_local_store_is_shown_whole(uri):
    assert public_uri(uri) == uri


def test_a_token_in_a_query_is_not_shown():
    """Of the store that is known to be one only the public part stays, wherever it stands in the text."""
    uri = "postgresql://db.example/mlflow?user=ann&password=s3cret"

    assert public_uri(uri) == "postgresql://db.example/mlflow"
    assert without_credentials(f"cannot open {uri}: refused", uri) == (
        "cannot open postgresql://db.example/mlflow: refused"
    )


@pytest.mark.parametrize(
    "uri",
    [
        "http://ann:s3cret@mlflow.example",
        "s3://s3cret@bucket/records",
        "gs://s3cret@bucket/records",
        "https://mlflow.example/?api_key=s3cret",
        "abfs://account.dfs.core.windows.net/records?tenant_id=t&client_secret=s3cret",
        "https://host/bm25.tsv?X-Amz-Signature=s3cret",
        "s3://eval/records?endpoint_override=http://ann:s3cret@127.0.0.1:9000",
        "s3://eval/records?endpoint_override=http%3A%2F%2Fann:s3cret%40127.0.0.1:9000",
    ],
)
def test_credentials_are_found_wherever_a_uri_has_them(uri):
    assert has_credentials(uri)


@pytest.mark.parametrize(
    "uri",
    [
        "http://:@mlflow.example/?token=",  # what is left of ${USER}, ${PASSWORD} and ${TOKEN}
        "s3://eval/records?region=eu-central-1&scheme=http&endpoint_override=127.0.0.1:9000",
        "abfs://account.dfs.core.windows.net/records?credential_kind=cli",
        "s3://bucket/a%3Ab/c%40d.tsv",
        "s3://tokens/secret/*.tsv",
        "abfss://container@account.dfs.core.windows.net/records",
        "gs://anonymous@bucket/records",
        "git+ssh://git@example.com/models.git",
    ],
)
def test_a_uri_without_credentials_is_not_accused(uri):
    """A word of a path is none, nor is an option of the filesystem."""
    assert not has_credentials(uri)


def test_a_token_in_any_query_is_not_recorded():
    assert without_credentials("--set a=https://h/?Token=s3cret&b=1 c") == "--set a=https://h/?Token=&b=1 c"
