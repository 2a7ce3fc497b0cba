package sigv4

import (
	"context"
	"net/http"
	"net/url"
	"strings"
	"testing"
	"time"
)

func TestVerifyAcceptsWhatTheAWSSignerSigned(t *testing.T) {
	for name, rawURL := range map[string]string{
		"plain key":           "http://127.0.0.1:9000/assets/key",
		"root":                "http://127.0.0.1:9000/",
		"no path":             "http://127.0.0.1:9000",
		"key to be encoded":   "http://127.0.0.1:9000/assets/" + url.PathEscape("a b+c~ü/é=&?*'()!$,;:@"),
		"double slash":        "http://127.0.0.1:9000/assets//a//b",
		"query":               "http://127.0.0.1:9000/assets?list-type=2&prefix=a%20b%2Fc&delimiter=%2F",
		"query without value": "http://127.0.0.1:9000/assets?location",
		"repeated parameter":  "http://127.0.0.1:9000/assets?b=2&a=2&b=1",
		"semicolon in query":  "http://127.0.0.1:9000/assets?prefix=a%3Bb",
		"virtual host":        "http://assets.s3.example.com/key",
	} {
		t.Run(name, func(t *testing.T) {
			r := newRequest(t, http.MethodGet, rawURL, nil)
			r.Header.Set("X-Amz-Meta-Spaces", "  a   b  c ")
			r.Header.Set("Range", "bytes=0-1")
			signHeader(t, r, hexSHA256(nil))
			auth, err := verify(received(t, r), testKeyring(), testTime)
			if err != nil {
				t.Fatal(err)
			}
			if auth.AccessKeyID != testID || auth.Presigned {
				t.Errorf("got %+v", auth)
			}
		})
	}
}

func TestVerifyAcceptsSignedContentLength(t *testing.T) {
	r := newRequest(t, http.MethodPut, "http://127.0.0.1/assets/key", []byte("hello"))
	r.Header.Set("Content-Length", "5")
	signHeader(t, r, UnsignedPayload)
	if !strings.Contains(r.Header.Get("Authorization"), "content-length") {
		t.Fatal("the oracle did not sign content-length")
	}
	if _, err := verify(received(t, r), testKeyring(), testTime); err != nil {
		t.Fatal(err)
	}
}

func presign(t testing.TB, r *http.Request, expires string) *http.Request {
	t.Helper()
	query := r.URL.Query()
	query.Set("X-Amz-Expires", expires)
	r.URL.RawQuery = query.Encode()
	signed, header, err := s3Signer().PresignHTTP(context.Background(), awsCredentials, r, UnsignedPayload, "s3", testRegion, testTime)
	if err != nil {
		t.Fatal(err)
	}
	out := newRequest(t, r.Method, signed, nil)
	for name, values := range header {
		out.Header[name] = values
	}
	return out
}

func TestVerifyAcceptsPresignedURLsOfTheAWSSigner(t *testing.T) {
	for _, key := range []string{"key", "a b+ü", "x/y//z"} {
		r := newRequest(t, http.MethodGet, "http://127.0.0.1/assets/"+(&url.URL{Path: key}).EscapedPath()+"?response-content-type=text%2Fplain", nil)
		auth, err := verify(received(t, presign(t, r, "60")), testKeyring(), testTime.Add(time.Minute))
		if err != nil {
			t.Fatalf("%q: %v", key, err)
		}
		if !auth.Presigned || auth.ContentSHA256 != UnsignedPayload {
			t.Errorf("%q: got %+v", key, auth)
		}
	}
}

func TestVerifyRefuses(t *testing.T) {
	signed := func(change func(*http.Request)) func(*testing.T) *http.Request {
		return func(t *testing.T) *http.Request {
			r := newRequest(t, http.MethodGet, "http://127.0.0.1/assets/key?a=b", nil)
			r.Header.Set("X-Amz-Meta-A", "1")
			signHeader(t, r, UnsignedPayload)
			change(r)
			return received(t, r)
		}
	}
	authorization := func(old, new string) func(*testing.T) *http.Request {
		return signed(func(r *http.Request) {
			r.Header.Set("Authorization", strings.ReplaceAll(r.Header.Get("Authorization"), old, new))
		})
	}
	presigned := func(expires string, change func(*http.Request)) func(*testing.T) *http.Request {
		return func(t *testing.T) *http.Request {
			r := presign(t, newRequest(t, http.MethodPut, "http://127.0.0.1/assets/key", nil), expires)
			change(r)
			return received(t, r)
		}
	}
	query := func(old, new string) func(*http.Request) {
		return func(r *http.Request) { r.URL.RawQuery = strings.ReplaceAll(r.URL.RawQuery, old, new) }
	}
	nothing := func(*http.Request) {}

	for name, test := range map[string]struct {
		request func(*testing.T) *http.Request
		at      time.Time
		want    Code
	}{
		"no signature":        {signed(func(r *http.Request) { r.Header.Del("Authorization") }), testTime, CodeAccessDenied},
		"signature version 2": {signed(func(r *http.Request) { r.Header.Set("Authorization", "AWS id:sig") }), testTime, CodeInvalidRequest},
		"presigned by version 2": {signed(func(r *http.Request) {
			r.Header.Del("Authorization")
			r.URL.RawQuery = "AWSAccessKeyId=id&Signature=sig&Expires=1"
		}), testTime, CodeInvalidRequest},
		"other path":              {signed(func(r *http.Request) { r.URL.Path = "/assets/other" }), testTime, CodeSignatureDoesNotMatch},
		"other method":            {signed(func(r *http.Request) { r.Method = http.MethodDelete }), testTime, CodeSignatureDoesNotMatch},
		"other query":             {signed(func(r *http.Request) { r.URL.RawQuery = "a=c" }), testTime, CodeSignatureDoesNotMatch},
		"other host":              {signed(func(r *http.Request) { r.Host = "127.0.0.2" }), testTime, CodeSignatureDoesNotMatch},
		"other header":            {signed(func(r *http.Request) { r.Header.Set("X-Amz-Meta-A", "2") }), testTime, CodeSignatureDoesNotMatch},
		"signed header missing":   {signed(func(r *http.Request) { r.Header.Del("X-Amz-Meta-A") }), testTime, CodeSignatureDoesNotMatch},
		"header not signed":       {signed(func(r *http.Request) { r.Header.Set("X-Amz-Copy-Source", "/a/b") }), testTime, CodeAccessDenied},
		"host not signed":         {authorization("host;", ""), testTime, CodeAccessDenied},
		"other payload hash":      {signed(func(r *http.Request) { r.Header.Set("X-Amz-Content-Sha256", hexSHA256(nil)) }), testTime, CodeSignatureDoesNotMatch},
		"payload hash missing":    {signed(func(r *http.Request) { r.Header.Del("X-Amz-Content-Sha256") }), testTime, CodeInvalidRequest},
		"unknown key":             {authorization(testID, "AKIDUNKNOWN"), testTime, CodeInvalidAccessKeyID},
		"another pair's id":       {authorization(testID, "OTHER"), testTime, CodeSignatureDoesNotMatch},
		"other region":            {authorization(testRegion, "us-west-1"), testTime, CodeSignatureDoesNotMatch},
		"other service":           {authorization("/s3/", "/sts/"), testTime, CodeAuthorizationMalformed},
		"scope of another day":    {authorization("20261130", "20261129"), testTime, CodeAuthorizationMalformed},
		"no signed headers":       {authorization("SignedHeaders=", "Nothing="), testTime, CodeAuthorizationMalformed},
		"clock behind":            {signed(nothing), testTime.Add(MaxSkew + time.Second), CodeRequestTimeTooSkewed},
		"clock ahead":             {signed(nothing), testTime.Add(-MaxSkew - time.Second), CodeRequestTimeTooSkewed},
		"no date":                 {signed(func(r *http.Request) { r.Header.Del("X-Amz-Date") }), testTime, CodeAccessDenied},
		"both ways":               {signed(func(r *http.Request) { r.URL.RawQuery = "X-Amz-Algorithm=" + algorithm }), testTime, CodeInvalidArgument},
		"bad escape":              {signed(func(r *http.Request) { r.URL.RawQuery = "a=%zz" }), testTime, CodeInvalidURI},
		"presigned expired":       {presigned("60", nothing), testTime.Add(61 * time.Second), CodeAccessDenied},
		"presigned too early":     {presigned("60", nothing), testTime.Add(-MaxSkew - time.Second), CodeAccessDenied},
		"presigned for too long":  {presigned("604801", nothing), testTime, CodeAuthorizationQuery},
		"presigned expiry raised": {presigned("60", query("X-Amz-Expires=60", "X-Amz-Expires=600")), testTime, CodeSignatureDoesNotMatch},
		"presigned other method":  {presigned("60", func(r *http.Request) { r.Method = http.MethodGet }), testTime, CodeSignatureDoesNotMatch},
		"presigned more query":    {presigned("60", func(r *http.Request) { r.URL.RawQuery += "&acl" }), testTime, CodeSignatureDoesNotMatch},
		"presigned more headers":  {presigned("60", func(r *http.Request) { r.Header.Set("X-Amz-Copy-Source", "/a/b") }), testTime, CodeAccessDenied},
		"presigned other scope":   {presigned("60", query("%2Fs3%2F", "%2Fec2%2F")), testTime, CodeAuthorizationQuery},
		"presigned no signature":  {presigned("60", query("X-Amz-Signature", "X-Amz-Nothing")), testTime, CodeAuthorizationQuery},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := verify(test.request(t), testKeyring(), test.at)
			if codeOf(err) != test.want {
				t.Errorf("got %v, want %s", err, test.want)
			}
		})
	}
}

func TestSigningKeyIsDerivedOncePerScope(t *testing.T) {
	k := testKeyring()
	first, _ := k.signingKey(testID, scope{"20261130", "a"})
	again, _ := k.signingKey(testID, scope{"20261130", "a"})
	if first != again {
		t.Error("derived twice in one scope")
	}
	other, _ := k.signingKey(testID, scope{"20261201", "a"})
	if *first == *other {
		t.Error("the key of one day was used on the next")
	}
}

func TestCredentialsNeverPrintTheirSecret(t *testing.T) {
	c := Credentials{testID, testSecret}
	for _, text := range []string{c.String(), c.GoString(), c.LogValue().String()} {
		if strings.Contains(text, testSecret) {
			t.Errorf("%q holds the secret", text)
		}
	}
}
