"""A client as its users write one, on what openapi-python-client generates."""

import io
import sys
import time
from collections.abc import Callable
from typing import TypeVar

import httpx
from api import AuthenticatedClient
from api.api.backups import create_backup, get_backup
from api.api.databases import create_database, get_database
from api.api.recovery import request_restore
from api.api.storage import create_bucket, get_object, list_buckets, upload_object
from api.models import (
    Backup,
    BackupStatus,
    CreateBucket,
    CreateDatabase,
    DatabaseStatus,
    ErrorCode,
    Failure,
    RequestRestore,
    RestoreMode,
    RestorePlan,
    UploadForm,
)
from api.types import UNSET, File, Unset

T = TypeVar("T")

base_url, key, project, name = sys.argv[1:]
client = AuthenticatedClient(base_url=base_url, token=key, timeout=httpx.Timeout(30))


def must(answer: T | Failure | None) -> T:
    if answer is None or isinstance(answer, Failure):
        raise SystemExit(f"{answer}")
    return answer


def until(read: Callable[[], T], done: Callable[[T], bool]) -> T:
    deadline = time.monotonic() + 60
    while time.monotonic() < deadline:
        value = read()
        if done(value):
            return value
        time.sleep(0.1)
    raise SystemExit("it takes too long")


def make_backup() -> None:
    body = CreateDatabase(project=project, name=name)
    db = must(create_database.sync(client=client, body=body, idempotency_key="create " + name)).data
    until(
        lambda: must(get_database.sync(db.id, client=client)).data,
        lambda d: d.status == DatabaseStatus.AVAILABLE and d.operation is None,
    )
    begun = must(create_backup.sync(db.id, client=client)).data
    backup: Backup = until(
        lambda: must(get_backup.sync(db.id, begun.id, client=client)).data,
        lambda b: b.status in (BackupStatus.COMPLETED, BackupStatus.FAILED),
    )
    assert backup.status == BackupStatus.COMPLETED and backup.size_bytes, backup
    restore = RequestRestore(target_lsn=backup.stop_lsn, dry_run=True, mode=RestoreMode.NEW, name=name + "_copy")
    plan = must(request_restore.sync(db.id, client=client, body=restore)).data
    assert isinstance(plan, RestorePlan) and plan.backup_id == backup.id, plan


def store() -> None:
    bucket = must(create_bucket.sync(client=client, body=CreateBucket(project=project, name=name + "-bytes"))).data
    must(create_bucket.sync(client=client, body=CreateBucket(project=project, name=name + "-second")))
    content = b"bytes of " + name.encode()
    must(upload_object.sync(bucket.id, client=client, body=File(payload=io.BytesIO(content)), key="a/b.bin"))
    form = UploadForm(file=File(payload=io.BytesIO(content), file_name="b.txt", mime_type="text/plain"))
    must(upload_object.sync(bucket.id, client=client, body=form, key="a/b.txt"))
    for object_key, media in (("a/b.bin", "application/octet-stream"), ("a/b.txt", "text/plain")):
        stored = must(get_object.sync(bucket.id, object_key, client=client)).data
        assert stored.content_type == media and stored.size_bytes == len(content), stored
        assert stored.download_url is not None, stored
        assert httpx.get(stored.download_url).content == content


def list_all() -> None:
    names: list[str] = []
    cursor: str | Unset = UNSET
    while True:
        page = must(list_buckets.sync(client=client, limit=1, cursor=cursor))
        names += [bucket.name for bucket in page.data]
        if page.meta.next_cursor is None:
            break
        cursor = page.meta.next_cursor
    assert {name + "-bytes", name + "-second"} <= set(names), names


def fail() -> None:
    absent = get_database.sync("db_none", client=client)
    assert isinstance(absent, Failure) and absent.error.code == ErrorCode.NOT_FOUND, absent
    refused = create_bucket.sync_detailed(client=client, body=CreateBucket(project=project, name="Not A Bucket"))
    assert refused.status_code == 422 and isinstance(refused.parsed, Failure), refused
    assert refused.parsed.error.code == ErrorCode.VALIDATION_ERROR, refused


make_backup()
store()
list_all()
fail()
