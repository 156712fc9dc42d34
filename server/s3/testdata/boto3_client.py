import filecmp, io, os, urllib.request
import boto3
from boto3.s3.transfer import TransferConfig
from botocore.config import Config
from botocore.exceptions import ClientError

s3 = boto3.client("s3", config=Config(signature_version="s3v4", s3={"addressing_style": "path"}))


def refused(code, call, **arguments):
    try:
        call(**arguments)
    except ClientError as e:
        assert e.response["Error"]["Code"] in code, e
        return
    raise AssertionError(f"{call.__name__} should fail with {code}")


s3.create_bucket(Bucket="files")
for algorithm in ["CRC32", "CRC32C", "CRC64NVME", "SHA1", "SHA256"]:
    try:
        put = s3.put_object(Bucket="files", Key=f"sums/{algorithm}", Body=b"hello", ChecksumAlgorithm=algorithm)
    except Exception as e:  # some need the library crt
        assert "crt" in str(e), e
        continue
    head = s3.head_object(Bucket="files", Key=f"sums/{algorithm}", ChecksumMode="ENABLED")
    assert head[f"Checksum{algorithm}"] == put[f"Checksum{algorithm}"], (head, put)

s3.put_object(Bucket="files", Key="a b/ü+", Body=b"0123456789", ContentType="text/plain", Metadata={"owner": "ann"}, CacheControl="no-store")
got = s3.get_object(Bucket="files", Key="a b/ü+", Range="bytes=2-4", ResponseContentType="text/html")
assert got["Body"].read() == b"234" and got["ContentType"] == "text/html" and got["Metadata"] == {"owner": "ann"}, got
etag = s3.head_object(Bucket="files", Key="a b/ü+")["ETag"]
refused(["PreconditionFailed"], s3.put_object, Bucket="files", Key="a b/ü+", Body=b"x", IfNoneMatch="*")
refused(["PreconditionFailed"], s3.put_object, Bucket="files", Key="a b/ü+", Body=b"x", IfMatch='"0"')
s3.put_object(Bucket="files", Key="a b/ü+", Body=b"new", IfMatch=etag)
refused(["304"], s3.head_object, Bucket="files", Key="a b/ü+", IfNoneMatch=s3.head_object(Bucket="files", Key="a b/ü+")["ETag"])

s3.upload_file("big", "files", "big", Config=TransferConfig(multipart_chunksize=5 << 20))
s3.download_file("files", "big", "got")
assert filecmp.cmp("big", "got", shallow=False)
s3.copy({"Bucket": "files", "Key": "big"}, "files", "copy", Config=TransferConfig(multipart_chunksize=5 << 20, multipart_threshold=5 << 20))
assert s3.get_object(Bucket="files", Key="copy")["Body"].read() == open("big", "rb").read()

url = s3.generate_presigned_url("get_object", Params={"Bucket": "files", "Key": "a b/ü+"}, ExpiresIn=60)
assert urllib.request.urlopen(url).read() == b"new"
url = s3.generate_presigned_url("put_object", Params={"Bucket": "files", "Key": "put"}, ExpiresIn=60)
urllib.request.urlopen(urllib.request.Request(url, method="PUT", data=b"presigned")).read()
assert s3.get_object(Bucket="files", Key="put")["Body"].read() == b"presigned"

keys = [o["Key"] for page in s3.get_paginator("list_objects_v2").paginate(Bucket="files", PaginationConfig={"PageSize": 2}) for o in page["Contents"]]
assert "a b/ü+" in keys and keys == sorted(keys), keys
page = s3.list_objects_v2(Bucket="files", Delimiter="/")
assert [p["Prefix"] for p in page["CommonPrefixes"]] == ["a b/", "sums/"], page
refused(["NoSuchBucketPolicy"], s3.get_bucket_policy, Bucket="files")
refused(["NoSuchKey"], s3.get_object, Bucket="files", Key="nothing")
refused(["404"], s3.head_bucket, Bucket="nothing")
deleted = s3.delete_objects(Bucket="files", Delete={"Objects": [{"Key": k} for k in keys + ["nothing"]]})
assert len(deleted["Deleted"]) == len(keys) + 1 and "Errors" not in deleted, deleted
s3.delete_bucket(Bucket="files")
