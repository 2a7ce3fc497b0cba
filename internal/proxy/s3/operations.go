package s3

import (
	"net/http"
	"strings"

	"github.com/suaveplan/storagemux/internal/proxy/sigv4"
)

// operation is what a request asks for: S3's name, for metrics and logs, and
// the code that answers.
type operation struct {
	name  string
	serve func(*request) error
}

func unsupported(name, what string) operation {
	return operation{name, func(*request) error { return notImplemented("%s is not supported.", what) }}
}

// fixed answers with a document that does not depend on anything stored.
func fixed(name string, write func(*request, document)) operation {
	return operation{name, func(q *request) error {
		d := newDocument()
		write(q, d)
		return q.writeDocument(http.StatusOK, d)
	}}
}

// absent answers that the bucket has no such configuration.
func absent(name, code, message string) operation {
	return operation{name, func(*request) error { return refuse(code, http.StatusNotFound, "%s", message) }}
}

// route chooses the operation. It looks at nothing but its arguments.
func route(method string, t target, query sigv4.Query, header http.Header) operation {
	switch {
	case method == http.MethodOptions:
		return operation{"PreflightRequest", preflight}
	case t.bucket == "":
		return routeService(method)
	case t.key == "":
		return routeBucket(method, query, header)
	default:
		return routeObject(method, query, header)
	}
}

func preflight(*request) error {
	return refuse("AccessForbidden", http.StatusForbidden, "CORSResponse: CORS is not enabled for this bucket.")
}

func routeService(method string) operation {
	if method == http.MethodGet || method == http.MethodHead {
		return operation{"ListBuckets", listBuckets}
	}
	return unsupported("Unknown", "This method on the service")
}

func routeBucket(method string, query sigv4.Query, header http.Header) operation {
	sub := subresource(query, bucketSubresources)
	switch method {
	case http.MethodGet:
		if op, ok := bucketReads[sub]; ok {
			return op
		}
	case http.MethodHead:
		return operation{"HeadBucket", headBucket}
	case http.MethodPut:
		switch sub {
		case "":
			return operation{"CreateBucket", createBucket}
		case "acl":
			return operation{"PutBucketAcl", putACL}
		}
	case http.MethodDelete:
		if sub == "" {
			return operation{"DeleteBucket", deleteBucket}
		}
	case http.MethodPost:
		switch {
		case sub == "delete":
			return operation{"DeleteObjects", deleteObjects}
		case strings.HasPrefix(header.Get("Content-Type"), "multipart/form-data"):
			return unsupported("PostObject", "Uploading by an HTML form")
		}
	}
	return unknown(sub)
}

func routeObject(method string, query sigv4.Query, header http.Header) operation {
	sub := subresource(query, objectSubresources)
	if query.Has("uploadId") {
		sub = "uploadId"
	}
	copies := header.Get("X-Amz-Copy-Source") != ""
	switch method + " " + sub {
	case "HEAD ", "HEAD partNumber":
		return operation{"HeadObject", headObject}
	case "PUT ":
		if copies {
			return operation{"CopyObject", copyObject}
		}
		return operation{"PutObject", putObject}
	case "PUT uploadId":
		if copies {
			return operation{"UploadPartCopy", uploadPartCopy}
		}
		return operation{"UploadPart", uploadPart}
	case "PUT acl":
		return operation{"PutObjectAcl", putACL}
	case "PUT tagging":
		return operation{"PutObjectTagging", putTagging}
	case "DELETE tagging":
		return operation{"DeleteObjectTagging", deleteTagging}
	case "PATCH ":
		return operation{"PatchObject", patchObject}
	case "POST uploads":
		return operation{"CreateMultipartUpload", createUpload}
	case "POST uploadId":
		return operation{"CompleteMultipartUpload", completeUpload}
	case "DELETE ":
		return operation{"DeleteObject", deleteObject}
	case "DELETE uploadId":
		return operation{"AbortMultipartUpload", abortUpload}
	}
	if method == http.MethodGet {
		if op, ok := objectReads[sub]; ok {
			return op
		}
	}
	return unknown(sub)
}

func unknown(sub string) operation {
	if sub == "" {
		return unsupported("Unknown", "This method on this resource")
	}
	return unsupported("Unknown", "This method on the sub-resource "+sub)
}

// Parameters that turn a request into another operation. Those that are not
// served are listed too, so that they never act on the object itself.
var (
	bucketSubresources = setOf("abac", "accelerate", "acl", "analytics", "cors", "delete", "encryption", "intelligent-tiering",
		"inventory", "lifecycle", "location", "logging", "metadataConfiguration", "metadataTable", "metrics", "notification",
		"object-lock", "ownershipControls", "policy", "policyStatus", "publicAccessBlock", "replication", "requestPayment",
		"session", "tagging", "uploads", "versioning", "versions", "website")
	objectSubresources = setOf("acl", "attributes", "legal-hold", "partNumber", "renameObject", "restore", "retention",
		"select", "tagging", "torrent", "uploadId", "uploads")
)

func setOf(names ...string) map[string]bool {
	set := make(map[string]bool, len(names))
	for _, name := range names {
		set[name] = true
	}
	return set
}

func subresource(query sigv4.Query, known map[string]bool) string {
	for _, p := range query {
		if known[p.Name] {
			return p.Name
		}
	}
	return ""
}
