// Checks of aws-sdk-js against an S3 endpoint; prints a line for each.
import { Readable } from "node:stream";
import { randomBytes } from "node:crypto";
import {
  S3Client, PutObjectCommand, GetObjectCommand, HeadObjectCommand, ListObjectsV2Command, CopyObjectCommand, DeleteObjectsCommand,
} from "@aws-sdk/client-s3";
import { Upload } from "@aws-sdk/lib-storage";

const Bucket = process.env.S3_BUCKET, odd = process.env.S3_ODD_KEY;
const s3 = new S3Client({ endpoint: process.env.S3_ENDPOINT, forcePathStyle: true, region: process.env.AWS_REGION });
const large = randomBytes(12 << 20);

function must(holds, what) {
  if (!holds) throw new Error(what);
}

async function body(Key, more = {}) {
  const got = await s3.send(new GetObjectCommand({ Bucket, Key, ...more }));
  return Buffer.from(await got.Body.transformToByteArray());
}

const checks = {
  "put and get": async () => {
    await s3.send(new PutObjectCommand({ Bucket, Key: "js/small", Body: "hello", ContentType: "text/plain", Metadata: { colour: "blue" } }));
    must((await body("js/small")).toString() === "hello", "the content differs");
    const head = await s3.send(new HeadObjectCommand({ Bucket, Key: "js/small" }));
    must(head.Metadata.colour === "blue" && head.ContentType === "text/plain", JSON.stringify(head));
  },
  "odd keys": async () => {
    await s3.send(new PutObjectCommand({ Bucket, Key: "js/" + odd, Body: "odd" }));
    must((await body("js/" + odd)).toString() === "odd", "the content differs");
  },
  "stream with trailer": async () => {
    const part = large.subarray(0, 300000);
    const pieces = [];
    for (let i = 0; i < part.length; i += 777) pieces.push(part.subarray(i, i + 777));
    await s3.send(new PutObjectCommand({ Bucket, Key: "js/stream", Body: Readable.from(pieces), ContentLength: part.length }));
    must((await body("js/stream")).equals(part), "the content differs");
  },
  "large in parts": async () => {
    const upload = new Upload({ client: s3, params: { Bucket, Key: "js/large", Body: Readable.from([large]) }, partSize: 5 << 20, queueSize: 3 });
    await upload.done();
    must((await body("js/large")).equals(large), "the content differs");
  },
  range: async () => must((await body("js/large", { Range: "bytes=10-19" })).equals(large.subarray(10, 20)), "another range"),
  copy: async () => {
    await s3.send(new CopyObjectCommand({ Bucket, Key: "js/copy", CopySource: `${Bucket}/js/small` }));
    must((await body("js/copy")).toString() === "hello", "the content differs");
  },
  list: async () => {
    const keys = [];
    let ContinuationToken;
    do {
      const page = await s3.send(new ListObjectsV2Command({ Bucket, Prefix: "js/", MaxKeys: 2, ContinuationToken }));
      keys.push(...page.Contents.map((o) => o.Key));
      ContinuationToken = page.NextContinuationToken;
    } while (ContinuationToken);
    must(keys.length === 5, keys.join());
  },
  "missing key": async () => {
    try {
      await body("js/none");
    } catch (e) {
      must(e.name === "NoSuchKey", e.name);
      return;
    }
    throw new Error("no error");
  },
  "delete many": async () => {
    const page = await s3.send(new ListObjectsV2Command({ Bucket, Prefix: "js/" }));
    const answer = await s3.send(new DeleteObjectsCommand({ Bucket, Delete: { Objects: page.Contents.map((o) => ({ Key: o.Key })) } }));
    must(!answer.Errors, JSON.stringify(answer.Errors));
    const left = await s3.send(new ListObjectsV2Command({ Bucket, Prefix: "js/" }));
    must(left.KeyCount === 0, `${left.KeyCount} are left`);
  },
};

for (const [name, check] of Object.entries(checks)) {
  try {
    await check();
    console.log("ok", name);
  } catch (e) {
    console.log(`failed ${name}: ${String(e.stack ?? e).replaceAll("\n", " ")}`);
  }
}
