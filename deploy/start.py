"""Starts MLflow's server in its container, with the options of `mlflow server`: `python start.py OPTIONS`.

Creates the buckets that do not exist, and upgrades the database of an earlier release. The settings are environment
variables (compose.yaml); secrets are read from files.
"""

import os
import subprocess
import sys
from pathlib import Path

import boto3
from botocore.config import Config


def create_buckets() -> None:
    """Create those of `BUCKETS` that the server does not have; waits for a server that is starting."""
    patience = Config(retries={"mode": "standard", "max_attempts": 10})
    client = boto3.client("s3", endpoint_url=os.environ["MLFLOW_S3_ENDPOINT_URL"], config=patience)
    existing = {bucket["Name"] for bucket in client.list_buckets()["Buckets"]}
    for name in os.environ["BUCKETS"].split(","):
        if name not in existing:
            client.create_bucket(Bucket=name)


def main() -> None:
    """Replace this process with the server."""
    # PostgreSQL's client library reads it, so that the password is in no address or list of processes.
    os.environ["PGPASSWORD"] = Path(os.environ["POSTGRES_PASSWORD_FILE"]).read_text(encoding="utf-8").strip()
    create_buckets()
    mlflow = [sys.executable, "-m", "mlflow"]
    subprocess.run([*mlflow, "db", "upgrade", os.environ["MLFLOW_BACKEND_STORE_URI"]], check=True)
    os.execv(sys.executable, [*mlflow, "server", *sys.argv[1:]])


if __name__ == "__main__":
    main()
