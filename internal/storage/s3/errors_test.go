package s3

import (
	"testing"

	"github.com/suaveplan/storagemux/internal/storage"
)

func TestAnswersMeanWhatTheySay(t *testing.T) {
	tests := map[string]struct {
		status    int
		code, key string
		want      storage.Code
		class     storage.Class
	}{
		"missing key":               {404, "NoSuchKey", "k", storage.CodeKeyNotFound, storage.ClassSemantic},
		"missing bucket":            {404, "NoSuchBucket", "k", storage.CodeBucketNotFound, storage.ClassSemantic},
		"HEAD of a missing key":     {404, "", "k", storage.CodeKeyNotFound, storage.ClassSemantic},
		"listing a missing bucket":  {404, "", "", storage.CodeBucketNotFound, storage.ClassSemantic},
		"a missing user":            {404, "XAdminUserNotFound", "k", storage.CodeAccessDenied, storage.ClassSemantic},
		"missing upload":            {404, "NoSuchUpload", "k", storage.CodeUploadNotFound, storage.ClassSemantic},
		"missing part":              {400, "InvalidPart", "k", storage.CodeInvalidPart, storage.ClassSemantic},
		"part too small":            {400, "EntityTooSmall", "k", storage.CodeInvalidPart, storage.ClassSemantic},
		"something else is missing": {404, "NoSuchTagSet", "k", storage.CodeRejected, storage.ClassSemantic},
		"denied":                    {403, "AccessDenied", "k", storage.CodeAccessDenied, storage.ClassSemantic},
		"wrong secret":              {403, "SignatureDoesNotMatch", "k", storage.CodeAccessDenied, storage.ClassSemantic},
		"unknown access key":        {403, "InvalidAccessKeyId", "k", storage.CodeAccessDenied, storage.ClassSemantic},
		"denied without a word":     {403, "", "k", storage.CodeAccessDenied, storage.ClassSemantic},
		"unauthorized":              {401, "", "k", storage.CodeAccessDenied, storage.ClassSemantic},
		"expired token":             {400, "ExpiredToken", "k", storage.CodeCredentialExpired, storage.ClassSemantic},
		"precondition":              {412, "PreconditionFailed", "k", storage.CodePreconditionFailed, storage.ClassSemantic},
		"conflict of conditions":    {409, "ConditionalRequestConflict", "k", storage.CodePreconditionFailed, storage.ClassSemantic},
		"not modified":              {304, "", "k", storage.CodeNotModified, storage.ClassSemantic},
		"range":                     {416, "InvalidRange", "k", storage.CodeInvalidRange, storage.ClassSemantic},
		"timeout of a request":      {408, "", "k", storage.CodeUnavailable, storage.ClassTransient},
		"timeout said with 400":     {400, "RequestTimeout", "k", storage.CodeUnavailable, storage.ClassTransient},
		"wrong clock":               {403, "RequestTimeTooSkewed", "k", storage.CodeUnavailable, storage.ClassTransient},
		"too many":                  {429, "", "k", storage.CodeThrottled, storage.ClassTransient},
		"slow down":                 {503, "SlowDown", "k", storage.CodeThrottled, storage.ClassTransient},
		"unavailable":               {503, "ServiceUnavailable", "k", storage.CodeUnavailable, storage.ClassTransient},
		"internal error":            {500, "InternalError", "k", storage.CodeUnavailable, storage.ClassTransient},
		"gateway in front":          {502, "", "k", storage.CodeUnavailable, storage.ClassTransient},
		"not implemented":           {501, "NotImplemented", "k", storage.CodeUnsupported, storage.ClassSemantic},
		"full":                      {507, "", "k", storage.CodeNoSpace, storage.ClassTransient},
		"quota":                     {403, "QuotaExceeded", "k", storage.CodeNoSpace, storage.ClassTransient},
		"wrong digest":              {400, "BadDigest", "k", storage.CodeInvalidBody, storage.ClassSemantic},
		"too large":                 {400, "EntityTooLarge", "k", storage.CodeTooLarge, storage.ClassSemantic},
		"too large for the gateway": {413, "", "k", storage.CodeTooLarge, storage.ClassSemantic},
		"key too long":              {400, "KeyTooLongError", "k", storage.CodeInvalidKey, storage.ClassSemantic},
		"another region":            {301, "PermanentRedirect", "k", storage.CodeRejected, storage.ClassSemantic},
		"anything else":             {418, "Teapot", "k", storage.CodeRejected, storage.ClassSemantic},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			err := answer{status: tt.status, code: tt.code}.error("Stat", tt.key)
			if err.Code != tt.want || storage.Classify(err) != tt.class {
				t.Errorf("%d %q means %s, %s; want %s, %s", tt.status, tt.code, err.Code, storage.Classify(err), tt.want, tt.class)
			}
		})
	}
}

func TestConfigGivesTheRightAddresses(t *testing.T) {
	tests := map[string]struct {
		cfg  Config
		want string // of the key "k"
	}{
		"AWS":                        {Config{Bucket: "b", Region: "eu-central-1"}, "https://b.s3.eu-central-1.amazonaws.com/k"},
		"AWS, no region":             {Config{Bucket: "b"}, "https://b.s3.us-east-1.amazonaws.com/k"},
		"AWS, a dot in the name":     {Config{Bucket: "b.c"}, "https://s3.us-east-1.amazonaws.com/b.c/k"},
		"AWS, China":                 {Config{Bucket: "b", Region: "cn-north-1"}, "https://b.s3.cn-north-1.amazonaws.com.cn/k"},
		"AWS, path":                  {Config{Bucket: "b", AddressingStyle: Path}, "https://s3.us-east-1.amazonaws.com/b/k"},
		"another":                    {Config{Endpoint: "http://minio:9000", Bucket: "b"}, "http://minio:9000/b/k"},
		"another, virtual":           {Config{Endpoint: "https://s3.example.com", Bucket: "b", AddressingStyle: VirtualHosted}, "https://b.s3.example.com/k"},
		"another, below a path":      {Config{Endpoint: "https://example.com/s3/", Bucket: "b", Prefix: "p/"}, "https://example.com/s3/b/p/k"},
		"AWS by its name":            {Config{Endpoint: "https://s3.eu-west-1.amazonaws.com", Bucket: "b"}, "https://b.s3.eu-west-1.amazonaws.com/k"},
		"no bucket":                  {Config{}, ""},
		"a bucket that is a path":    {Config{Bucket: "a/b"}, ""},
		"no scheme":                  {Config{Endpoint: "minio:9000", Bucket: "b"}, ""},
		"credentials in the address": {Config{Endpoint: "http://a:b@minio", Bucket: "b"}, ""},
		"virtual at an IP address":   {Config{Endpoint: "http://127.0.0.1:9000", Bucket: "b", AddressingStyle: VirtualHosted}, ""},
		"unknown style":              {Config{Bucket: "b", AddressingStyle: "Diagonal"}, ""},
		"a bad CA bundle":            {Config{Bucket: "b", CABundle: []byte("x")}, ""},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			tt.cfg.Auth = Auth{Type: Anonymous}
			s, err := New(tt.cfg)
			if tt.want == "" {
				if err == nil {
					t.Error("accepted")
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			if got := s.build(t.Context(), &request{method: "GET", key: "k"}).URL.String(); got != tt.want {
				t.Errorf("got %s, want %s", got, tt.want)
			}
		})
	}
	for _, auth := range []Auth{{}, {Type: "Magic"}, {Type: Static}, {Type: Static, AccessKeyID: "a"}} {
		if _, err := New(Config{Bucket: "b", Auth: auth}); err == nil {
			t.Errorf("the authentication %+v was accepted", auth)
		}
	}
}
