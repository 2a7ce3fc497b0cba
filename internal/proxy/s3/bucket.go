package s3

import (
	"net/http"

	"github.com/suaveplan/storagemux/internal/storage"
)

func listBuckets(q *request) error {
	d := newDocument()
	d.root("ListAllMyBucketsResult")
	d.owner("Owner")
	d.open("Buckets")
	d.open("Bucket")
	d.text("Name", q.cfg.Bucket)
	created := q.cfg.Created
	if created.IsZero() {
		created = q.h.started
	}
	d.time("CreationDate", created)
	d.text("BucketRegion", q.cfg.region())
	d.close("Bucket")
	d.close("Buckets")
	d.close("ListAllMyBucketsResult")
	return q.writeDocument(http.StatusOK, d)
}

func headBucket(q *request) error {
	q.w.Header()["x-amz-bucket-region"] = []string{q.cfg.region()}
	q.done(http.StatusOK)
	return nil
}

// createBucket answers as S3 does in us-east-1 to an owner who creates a bucket
// again. The configuration in the body is verified and means nothing here.
func createBucket(q *request) error {
	if q.target.bucket != q.cfg.Bucket {
		return refuse("AccessDenied", http.StatusForbidden, "This endpoint has one bucket, %s, and no others can be made.", q.cfg.Bucket)
	}
	if _, err := q.readXML(maxXMLBytes); err != nil {
		return err
	}
	q.w.Header()["Location"] = []string{"/" + q.cfg.Bucket}
	q.done(http.StatusOK)
	return nil
}

func deleteBucket(*request) error {
	return refuse("AccessDenied", http.StatusForbidden, "The bucket belongs to the StorageMux and goes with it.")
}

// bucketReads are the operations of GET on the bucket by sub-resource.
var bucketReads = map[string]operation{
	"": {"ListObjects", func(q *request) error {
		if q.query.Get("list-type") == "2" {
			q.stats.Operation = "ListObjectsV2"
			return listObjectsV2(q)
		}
		return listObjects(q)
	}},
	"location": fixed("GetBucketLocation", func(q *request, d document) {
		region := q.cfg.region()
		if region == "us-east-1" {
			region = "" // as S3 has it
		}
		d.rootText("LocationConstraint", region)
	}),
	"versions":     {"ListObjectVersions", listVersions},
	"uploads":      {"ListMultipartUploads", listUploads},
	"acl":          fixed("GetBucketAcl", writeACL),
	"versioning":   fixed("GetBucketVersioning", empty("VersioningConfiguration")),
	"accelerate":   fixed("GetBucketAccelerateConfiguration", empty("AccelerateConfiguration")),
	"logging":      fixed("GetBucketLogging", empty("BucketLoggingStatus")),
	"notification": fixed("GetBucketNotificationConfiguration", empty("NotificationConfiguration")),
	"requestPayment": fixed("GetBucketRequestPayment", func(_ *request, d document) {
		d.root("RequestPaymentConfiguration")
		d.text("Payer", "BucketOwner")
		d.close("RequestPaymentConfiguration")
	}),
	"policyStatus": absent("GetBucketPolicyStatus", "NoSuchBucketPolicy", "The bucket policy does not exist"),
	"policy":       absent("GetBucketPolicy", "NoSuchBucketPolicy", "The bucket policy does not exist"),
	"lifecycle":    absent("GetBucketLifecycleConfiguration", "NoSuchLifecycleConfiguration", "The lifecycle configuration does not exist"),
	"cors":         absent("GetBucketCors", "NoSuchCORSConfiguration", "The CORS configuration does not exist"),
	"website":      absent("GetBucketWebsite", "NoSuchWebsiteConfiguration", "The specified bucket does not have a website configuration"),
	"tagging":      absent("GetBucketTagging", "NoSuchTagSet", "The TagSet does not exist"),
	"replication":  absent("GetBucketReplication", "ReplicationConfigurationNotFoundError", "The replication configuration was not found"),
	"encryption": absent("GetBucketEncryption", "ServerSideEncryptionConfigurationNotFoundError",
		"The server side encryption configuration was not found"),
	"object-lock": absent("GetObjectLockConfiguration", "ObjectLockConfigurationNotFoundError",
		"Object Lock configuration does not exist for this bucket"),
	"ownershipControls": absent("GetBucketOwnershipControls", "OwnershipControlsNotFoundError", "The bucket ownership controls were not found"),
	"publicAccessBlock": absent("GetPublicAccessBlock", "NoSuchPublicAccessBlockConfiguration",
		"The public access block configuration was not found"),
}

// objectReads are the operations of GET on an object by sub-resource.
var objectReads = map[string]operation{
	"":           {"GetObject", getObject},
	"partNumber": {"GetObject", getObject},
	"attributes": {"GetObjectAttributes", getAttributes},
	"uploadId":   {"ListParts", listParts},
	"acl":        ofObject("GetObjectAcl", writeACL),
	"tagging":    {"GetObjectTagging", getTagging},
	"retention":  absent("GetObjectRetention", "NoSuchObjectLockConfiguration", "The specified object does not have an ObjectLock configuration"),
	"legal-hold": absent("GetObjectLegalHold", "NoSuchObjectLockConfiguration", "The specified object does not have an ObjectLock configuration"),
}

// ofObject is fixed for an object, which must exist.
func ofObject(name string, write func(*request, document)) operation {
	document := fixed(name, write)
	return operation{name, func(q *request) error {
		if err := q.checkSelectors(); err != nil {
			return err
		}
		if err := q.mustExist(); err != nil {
			return err
		}
		return document.serve(q)
	}}
}

func (q *request) mustExist() error {
	_, err := q.cfg.Storage.Stat(q.r.Context(), q.target.key, storage.StatOptions{})
	return err
}

func empty(name string) func(*request, document) {
	return func(_ *request, d document) {
		d.root(name)
		d.close(name)
	}
}
