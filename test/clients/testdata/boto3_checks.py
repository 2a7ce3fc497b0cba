"""Checks of boto3 against an S3 endpoint; prints a line for each."""
import os
import boto3
from boto3.s3.transfer import TransferConfig
from botocore.client import Config
from botocore.exceptions import ClientError

BUCKET, ODD = os.environ["S3_BUCKET"], os.environ["S3_ODD_KEY"]
s3 = boto3.client("s3", endpoint_url=os.environ["S3_ENDPOINT"], config=Config(signature_version="s3v4", s3={"addressing_style": "path"}))
large = os.urandom(12 << 20)


def check(name, f):
    try:
        f()
        print("ok", name)
    except Exception as e:  # every failure is a result
        print("failed", name + ":", repr(e).replace("\n", " "))


def body(key, **more):
    return s3.get_object(Bucket=BUCKET, Key=key, **more)["Body"].read()


def put_and_get():
    s3.put_object(Bucket=BUCKET, Key="boto/small", Body=b"hello", Metadata={"colour": "blue"}, ContentType="text/plain")
    got = s3.get_object(Bucket=BUCKET, Key="boto/small")
    assert got["Body"].read() == b"hello" and got["Metadata"] == {"colour": "blue"} and got["ContentType"] == "text/plain", got


def odd_keys():
    s3.put_object(Bucket=BUCKET, Key="boto/" + ODD, Body=b"odd")
    assert body("boto/" + ODD) == b"odd"


def large_in_parts():
    import io
    s3.upload_fileobj(io.BytesIO(large), BUCKET, "boto/large", Config=TransferConfig(multipart_threshold=5 << 20, multipart_chunksize=5 << 20))
    out = io.BytesIO()
    s3.download_fileobj(BUCKET, "boto/large", out, Config=TransferConfig(multipart_threshold=5 << 20, multipart_chunksize=5 << 20))
    assert out.getvalue() == large


def resumed_parts():
    up = s3.create_multipart_upload(Bucket=BUCKET, Key="boto/parts")["UploadId"]
    s3.upload_part(Bucket=BUCKET, Key="boto/parts", UploadId=up, PartNumber=2, Body=b"end")
    s3.upload_part(Bucket=BUCKET, Key="boto/parts", UploadId=up, PartNumber=1, Body=large[: 5 << 20])
    listed = s3.list_parts(Bucket=BUCKET, Key="boto/parts", UploadId=up)["Parts"]
    parts = [{"PartNumber": p["PartNumber"], "ETag": p["ETag"]} for p in listed]
    s3.complete_multipart_upload(Bucket=BUCKET, Key="boto/parts", UploadId=up, MultipartUpload={"Parts": parts})
    assert body("boto/parts") == large[: 5 << 20] + b"end"


def abort_parts():
    up = s3.create_multipart_upload(Bucket=BUCKET, Key="boto/aborted")["UploadId"]
    s3.upload_part(Bucket=BUCKET, Key="boto/aborted", UploadId=up, PartNumber=1, Body=b"x")
    s3.abort_multipart_upload(Bucket=BUCKET, Key="boto/aborted", UploadId=up)
    try:
        s3.list_parts(Bucket=BUCKET, Key="boto/aborted", UploadId=up)
    except ClientError as e:
        assert e.response["Error"]["Code"] == "NoSuchUpload", e
    else:
        raise AssertionError("the upload is still there")


def ranges():
    assert body("boto/large", Range="bytes=10-19") == large[10:20]
    assert body("boto/large", Range="bytes=-7") == large[-7:]


def conditions():
    etag = s3.head_object(Bucket=BUCKET, Key="boto/small")["ETag"]
    assert body("boto/small", IfMatch=etag) == b"hello"
    try:
        body("boto/small", IfNoneMatch=etag)
    except ClientError as e:
        assert e.response["ResponseMetadata"]["HTTPStatusCode"] == 304, e
    else:
        raise AssertionError("If-None-Match did not hold")


def copy():
    s3.copy({"Bucket": BUCKET, "Key": "boto/large"}, BUCKET, "boto/copy", Config=TransferConfig(multipart_threshold=5 << 20, multipart_chunksize=5 << 20))
    assert body("boto/copy") == large


def lists():
    keys = [o["Key"] for page in s3.get_paginator("list_objects_v2").paginate(Bucket=BUCKET, Prefix="boto/", PaginationConfig={"PageSize": 2}) for o in page["Contents"]]
    assert keys == sorted(keys, key=lambda k: k.encode()) and len(keys) == 5, keys
    top = s3.list_objects(Bucket=BUCKET, Delimiter="/", Prefix="bo")
    assert [p["Prefix"] for p in top["CommonPrefixes"]] == ["boto/"], top


def missing():
    try:
        body("boto/none")
    except s3.exceptions.NoSuchKey:
        return
    raise AssertionError("no NoSuchKey")


def delete_many():
    keys = [o["Key"] for o in s3.list_objects_v2(Bucket=BUCKET, Prefix="boto/")["Contents"]]
    answer = s3.delete_objects(Bucket=BUCKET, Delete={"Objects": [{"Key": k} for k in keys]})
    assert not answer.get("Errors"), answer
    assert s3.list_objects_v2(Bucket=BUCKET, Prefix="boto/")["KeyCount"] == 0


for name, f in [("put and get", put_and_get), ("odd keys", odd_keys), ("large in parts", large_in_parts), ("parts by hand", resumed_parts),
                ("abort", abort_parts), ("range", ranges), ("conditions", conditions), ("copy", copy), ("list", lists), ("missing key", missing),
                ("delete many", delete_many)]:
    check(name, f)
