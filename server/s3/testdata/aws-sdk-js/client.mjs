import assert from "node:assert/strict";
import { createReadStream, readFileSync } from "node:fs";
import {
  CompleteMultipartUploadCommand, CopyObjectCommand, CreateBucketCommand, CreateMultipartUploadCommand, DeleteBucketCommand,
  DeleteObjectsCommand, GetObjectCommand, GetObjectAttributesCommand, HeadObjectCommand, paginateListObjectsV2, PutObjectCommand,
  S3Client, UploadPartCommand, UploadPartCopyCommand,
} from "@aws-sdk/client-s3";
import { Upload } from "@aws-sdk/lib-storage";
import { getSignedUrl } from "@aws-sdk/s3-request-presigner";

const s3 = new S3Client({ forcePathStyle: true }); // the rest is in the environment
const Bucket = "files";
const bytes = async (Key, more = {}) => Buffer.from(await (await s3.send(new GetObjectCommand({ Bucket, Key, ...more }))).Body.transformToByteArray());
const refused = (name, command) => assert.rejects(s3.send(command), { name });

await s3.send(new CreateBucketCommand({ Bucket }));
for (const ChecksumAlgorithm of ["CRC32", "CRC32C", "CRC64NVME", "SHA1", "SHA256"]) {
  let put;
  try {
    put = await s3.send(new PutObjectCommand({ Bucket, Key: `sums/${ChecksumAlgorithm}`, Body: "hello", ChecksumAlgorithm }));
  } catch (e) {
    assert.match(String(e), /CRT|crc64/i); // one needs another package
    continue;
  }
  const head = await s3.send(new HeadObjectCommand({ Bucket, Key: `sums/${ChecksumAlgorithm}`, ChecksumMode: "ENABLED" }));
  assert.equal(head[`Checksum${ChecksumAlgorithm}`], put[`Checksum${ChecksumAlgorithm}`]);
}

const Key = "a b/ü+";
await s3.send(new PutObjectCommand({ Bucket, Key, Body: "0123456789", ContentType: "text/plain", Metadata: { owner: "ann" }, Tagging: "team=blue" }));
assert.equal((await bytes(Key, { Range: "bytes=2-4" })).toString(), "234");
const head = await s3.send(new HeadObjectCommand({ Bucket, Key }));
assert.deepEqual([head.Metadata, head.ContentType, head.ContentLength], [{ owner: "ann" }, "text/plain", 10]);
await refused("PreconditionFailed", new PutObjectCommand({ Bucket, Key, Body: "x", IfNoneMatch: "*" }));
await refused("PreconditionFailed", new PutObjectCommand({ Bucket, Key, Body: "x", IfMatch: '"0"' }));
await s3.send(new PutObjectCommand({ Bucket, Key, Body: "new", IfMatch: head.ETag }));
await refused("NoSuchKey", new GetObjectCommand({ Bucket, Key: "nothing" }));

// A stream of a length that is not announced goes in parts.
const big = readFileSync("big");
await new Upload({ client: s3, partSize: 5 << 20, params: { Bucket, Key: "big", Body: createReadStream("big") } }).done();
assert.ok(big.equals(await bytes("big")));
await s3.send(new CopyObjectCommand({ Bucket, Key: "copy", CopySource: `${Bucket}/big` }));
assert.ok(big.equals(await bytes("copy")));
const { UploadId } = await s3.send(new CreateMultipartUploadCommand({ Bucket, Key: "joined" }));
const part = await s3.send(new UploadPartCopyCommand({ Bucket, Key: "joined", UploadId, PartNumber: 1, CopySource: `${Bucket}/big`, CopySourceRange: "bytes=0-5242879" }));
const last = await s3.send(new UploadPartCommand({ Bucket, Key: "joined", UploadId, PartNumber: 2, Body: "end" }));
await s3.send(new CompleteMultipartUploadCommand({
  Bucket, Key: "joined", UploadId,
  MultipartUpload: { Parts: [{ PartNumber: 1, ETag: part.CopyPartResult.ETag }, { PartNumber: 2, ETag: last.ETag }] },
}));
assert.ok(Buffer.concat([big.subarray(0, 5 << 20), Buffer.from("end")]).equals(await bytes("joined")));
const attributes = await s3.send(new GetObjectAttributesCommand({ Bucket, Key: "joined", ObjectAttributes: ["ObjectSize", "ObjectParts"] }));
assert.deepEqual([attributes.ObjectSize, attributes.ObjectParts.TotalPartsCount], [(5 << 20) + 3, 2]);

assert.equal(await (await fetch(await getSignedUrl(s3, new GetObjectCommand({ Bucket, Key }), { expiresIn: 60 }))).text(), "new");
const put = await fetch(await getSignedUrl(s3, new PutObjectCommand({ Bucket, Key: "put" }), { expiresIn: 60 }), { method: "PUT", body: "presigned" });
assert.equal(put.status, 200);
assert.equal((await bytes("put")).toString(), "presigned");
const described = new PutObjectCommand({ Bucket, Key: "put", Metadata: { owner: "ann" }, Tagging: "team=blue", StorageClass: "STANDARD" });
assert.equal((await fetch(await getSignedUrl(s3, described), { method: "PUT", body: "presigned" })).status, 200);
const stored = await s3.send(new HeadObjectCommand({ Bucket, Key: "put" }));
assert.deepEqual([stored.Metadata, stored.TagCount], [{ owner: "ann" }, 1]);
const open = new PutObjectCommand({ Bucket, Key: "put", ACL: "public-read" });
assert.equal((await fetch(await getSignedUrl(s3, open), { method: "PUT", body: "presigned" })).status, 501);

const keys = [];
for await (const page of paginateListObjectsV2({ client: s3, pageSize: 2 }, { Bucket })) keys.push(...page.Contents.map((o) => o.Key));
assert.ok(keys.includes(Key));
const deleted = await s3.send(new DeleteObjectsCommand({ Bucket, Delete: { Objects: keys.map((Key) => ({ Key })) } }));
assert.deepEqual([deleted.Deleted.length, deleted.Errors], [keys.length, undefined]);
await s3.send(new DeleteBucketCommand({ Bucket }));
