package muxconfig

import (
	"errors"
	"fmt"
	"testing"
	"time"
)

func TestValidateNamesTheFieldAndTheRuleThatIsBroken(t *testing.T) {
	now := time.Now()
	root := func(d *Document) *Mux { return &d.Muxes[0] }
	nested := func(d *Document) *Mux { return &d.Muxes[1] }
	memory := func(d *Document) *Backend { return &d.Backends[0] }
	s3 := func(d *Document) *Backend { return &d.Backends[1] }
	http := func(d *Document) *HTTP { return asHTTP(&d.Backends[1]) }
	bunny := func(d *Document) *Bunny { return asBunny(&d.Backends[1]) }
	swift := func(d *Document) *Swift { return asSwift(&d.Backends[1]) }
	azure := func(d *Document) *Azure { return asAzure(&d.Backends[1]) }
	tests := []struct {
		name   string
		breaks func(*Document)
		want   string
	}{
		{"schema of the future", func(d *Document) { d.Schema = SchemaVersion + 1 }, fmt.Sprintf("schema: version %d must be %d to %d", SchemaVersion+1, MinSchemaVersion, SchemaVersion)},
		{"no revision", func(d *Document) { d.Revision = 0 }, "revision: must be at least 1"},
		{"negative transitions", func(d *Document) { d.Transitions = -1 }, "transitions: must not be negative"},
		{"no bucket", func(d *Document) { d.Frontend.Bucket = "" }, "frontend.bucket: must not be empty"},
		{"unknown auth", func(d *Document) { d.Frontend.Auth = "Basic" }, `frontend.auth: "Basic" must be SigV4 or None`},
		{"SigV4 without keys", func(d *Document) { d.Frontend.KeyPairs = nil }, "frontend.keyPairs: must have 1 to 4 entries with auth SigV4"},
		{"five key pairs", func(d *Document) { d.Frontend.KeyPairs = make([]KeyPair, 5) }, "frontend.keyPairs: must have 1 to 4 entries with auth SigV4"},
		{"None with keys", func(d *Document) { d.Frontend.Auth = FrontendNone }, "frontend.keyPairs: must be empty with auth None"},
		{"half a key pair", func(d *Document) { d.Frontend.KeyPairs[0].SecretAccessKey = "" }, "frontend.keyPairs[0]: must have an access key id and a secret access key"},
		{"TLS without a key", func(d *Document) { d.Frontend.TLS.Key = "" }, "frontend.tls: must have a certificate and its key"},
		{"no admin token", func(d *Document) { d.Admin.Token = "" }, "admin: must have a token, a certificate and its key"},
		{"no admin key", func(d *Document) { d.Admin.TLS.Key = "" }, "admin: must have a token, a certificate and its key"},
		{"no sealing key", func(d *Document) { d.Keys.Current = "" }, "keys.current: must be 32 bytes in base64"},
		{"short previous sealing key", func(d *Document) { d.Keys.Previous = "c2hvcnQ=" }, "keys.previous: must be 32 bytes in base64"},
		{"muxes out of order", func(d *Document) { d.Muxes[0], d.Muxes[1] = d.Muxes[1], d.Muxes[0] }, "muxes: must be sorted by name"},
		{"two muxes of a name", func(d *Document) { d.Muxes[1].Name = "assets" }, `muxes: two muxes are named "assets"`},
		{"mux without uid", func(d *Document) { root(d).UID = "" }, "muxes: each mux must have a name and a uid"},
		{"unknown mode", func(d *Document) { root(d).Mode = "random" }, `muxes[assets].mode: "random" must be one of [failover round-robin weighted sticky-by-key shield mirror]`},
		{"unknown keyspace", func(d *Document) { root(d).Keyspace = "shared" }, `muxes[assets].keyspace: "shared" must be replicated or spread`},
		{"spread where it cannot be", func(d *Document) { nested(d).Keyspace = KeyspaceSpread }, "muxes[mirrors].keyspace: must be replicated in mode weighted"},
		{"no members", func(d *Document) { root(d).Members = nil }, "muxes[assets].members: must have at least 1 in mode failover"},
		{"a shield of one", func(d *Document) { root(d).Mode, root(d).Members = ModeShield, root(d).Members[:1] }, "muxes[assets].members: must have at least 2 in mode shield"},
		{"no timeout", func(d *Document) { root(d).BackendTimeout = 0 }, "muxes[assets].backendTimeout: must be above zero"},
		{"no attempt", func(d *Document) { root(d).Retry.MaxAttempts = 0 }, "muxes[assets].retry.maxAttempts: must be at least 1"},
		{"retry intervals upside down", func(d *Document) { root(d).Retry.MaxInterval = 0 }, "muxes[assets].retry: initialInterval must not be negative nor above maxInterval"},
		{"no cooldown", func(d *Document) { root(d).Health.Cooldown = 0 }, "muxes[assets].health: cooldown must be above zero and at most maxCooldown"},
		{"unknown whenAllDown", func(d *Document) { root(d).Health.WhenAllDown = "Panic" }, `muxes[assets].health.whenAllDown: "Panic" must be Try or Fail`},
		{"unknown sticky hash", func(d *Document) { root(d).StickyHash = "md5" }, `muxes[assets].stickyHash: "md5" must be fnv1a-modulo or rendezvous`},
		{"unknown onFanoutPartial", func(d *Document) { root(d).OnFanoutPartial = "Ignore" }, `muxes[assets].onFanoutPartial: "Ignore" must be Succeed or Fail`},
		{"member without name", func(d *Document) { root(d).Members[0].Name = "" }, "muxes[assets].members[]: must have a name"},
		{"member with a path for a name", func(d *Document) { root(d).Members[0].Name = "a/b" }, "muxes[assets].members[a/b]: the name must not contain a slash"},
		{"two members of a name", func(d *Document) { root(d).Members[1].Name = "primary" }, "muxes[assets].members[primary]: two members have this name"},
		{"member of nothing", func(d *Document) { root(d).Members[0].Backend = "" }, "muxes[assets].members[primary]: must name exactly one of backend and mux"},
		{"member of both", func(d *Document) { root(d).Members[0].Mux = "mirrors" }, "muxes[assets].members[primary]: must name exactly one of backend and mux"},
		{"no weight in weighted", func(d *Document) { nested(d).Members[0].Weight = nil }, "muxes[mirrors].members[eu].weight: must be set in mode weighted"},
		{"weight elsewhere", func(d *Document) { root(d).Members[0].Weight = new(int32(1)) }, "muxes[assets].members[primary].weight: must be set in mode weighted only"},
		{"negative weight", func(d *Document) { nested(d).Members[0].Weight = new(int32(-1)) }, "muxes[mirrors].members[eu].weight: must not be negative"},
		{"all weights zero", func(d *Document) { nested(d).Members[0].Weight = new(int32(0)) }, "muxes[mirrors].members: at least one weight must be above zero"},
		{"unknown drain phase", func(d *Document) { root(d).Members[0].Drain = &Drain{Phase: "Gone"} }, `muxes[assets].members[primary].drain.phase: "Gone" must be ReadOnly or Granted`},
		{"granted without deadline", func(d *Document) { root(d).Members[0].Drain = &Drain{Phase: DrainGranted} }, "muxes[assets].members[primary].drain.deadline: must be set in phase Granted only"},
		{"read-only with deadline", func(d *Document) { root(d).Members[0].Drain = &Drain{Phase: DrainReadOnly, Deadline: &now} }, "muxes[assets].members[primary].drain.deadline: must be set in phase Granted only"},
		{"backends out of order", func(d *Document) { d.Backends[0].Name = "z" }, "backends: must be sorted by name"},
		{"two backends of a name", func(d *Document) { d.Backends[0].Name = "primary" }, `backends: two backends are named "primary"`},
		{"two backends of a uid", func(d *Document) { d.Backends[0].UID = "backend-1" }, `backends[primary].uid: another backend has it too`},
		{"backend without uid", func(d *Document) { memory(d).UID = "" }, "backends: each backend must have a name and a uid"},
		{"negative timeout", func(d *Document) { memory(d).Timeout = -1 }, "backends[eu].timeout: must not be negative"},
		{"nothing in flight", func(d *Document) { memory(d).MaxInFlight = 0 }, "backends[eu].maxInFlight: must be at least 1"},
		{"check without interval", func(d *Document) { s3(d).HealthCheck.Interval = 0 }, "backends[primary].healthCheck: interval and timeout must be above zero"},
		{"no type", func(d *Document) { memory(d).Memory = nil }, "backends[eu]: must have exactly one type that this version knows"},
		{"two types", func(d *Document) { memory(d).File = &File{Path: "/x"} }, "backends[eu]: must have exactly one type that this version knows"},
		{"memory without limit", func(d *Document) { memory(d).Memory.SizeLimit = 0 }, "backends[eu].memory.sizeLimit: must be at least 1 byte"},
		{"file without path", func(d *Document) { memory(d).Memory, memory(d).File = nil, &File{} }, "backends[eu].file.path: must not be empty"},
		{"s3 without bucket", func(d *Document) { s3(d).S3.Bucket = "" }, "backends[primary].s3.bucket: must not be empty"},
		{"s3 with an unknown addressing style", func(d *Document) { s3(d).S3.AddressingStyle = "Dns" }, `backends[primary].s3.addressingStyle: "Dns" must be Auto, Path or VirtualHosted`},
		{"s3 without credentials", func(d *Document) { s3(d).S3.Auth.SecretAccessKey = "" }, "backends[primary].s3.auth: must have an access key id and a secret access key"},
		{"s3 with an unknown auth", func(d *Document) { s3(d).S3.Auth.Type = "Magic" }, `backends[primary].s3.auth.type: "Magic" must be Secret, Ambient or Anonymous`},
		{"http without url", func(d *Document) { http(d).URL = "" }, "backends[primary].http.url: must not be empty"},
		{"http of an unknown flavor", func(d *Document) { http(d).Flavor = "FTP" }, `backends[primary].http.flavor: "FTP" must be WebDAV or Plain`},
		{"http with a user and a token", func(d *Document) { http(d).Auth.Token = "t" }, "backends[primary].http.auth: must not have both a token and a user's name and password"},
		{"http without password", func(d *Document) { http(d).Auth.Password = "" }, "backends[primary].http.auth: must have both of username and password, or neither"},
		{"http with a colon in the name", func(d *Document) { http(d).Auth.Username = "a:b" }, "backends[primary].http.auth: must have a username without a colon"},
		{"http with a broken token", func(d *Document) { http(d).Auth = HTTPAuth{Token: "t\n"} }, "backends[primary].http.auth: must have a token of printable ASCII characters, without a line break"},
		{"http with a header without name", func(d *Document) { http(d).Auth.Headers = map[string]Secret{"": "x"} }, `backends[primary].http.auth: must have the name of an HTTP header after header., not ""`},
		{"http with a header name that is none", func(d *Document) { http(d).Auth.Headers = map[string]Secret{"X Y": "x"} }, `backends[primary].http.auth: must have the name of an HTTP header after header., not "X Y"`},
		{"http with a header of the request", func(d *Document) { http(d).Auth.Headers = map[string]Secret{"Range": "x"} }, `backends[primary].http.auth: must not have header.Range, which each request sets by itself`},
		{"http with two authorizations", func(d *Document) { http(d).Auth.Headers = map[string]Secret{"authorization": "x"} }, `backends[primary].http.auth: must not have header.Authorization beside a token or a username`},
		{"http with a broken header", func(d *Document) { http(d).Auth.Headers = map[string]Secret{"X-Key": "a\r\nb"} }, `backends[primary].http.auth: must have a value of printable ASCII characters, without a line break, under header.X-Key`},
		{"bunny without zone", func(d *Document) { bunny(d).Zone = "" }, "backends[primary].bunny.zone: must not be empty"},
		{"bunny without key", func(d *Document) { bunny(d).AccessKey = "" }, "backends[primary].bunny.accessKey: must be of printable ASCII characters, without a line break"},
		{"bunny with a broken key", func(d *Document) { bunny(d).AccessKey = "key\n" }, "backends[primary].bunny.accessKey: must be of printable ASCII characters, without a line break"},
		{"swift without identity service", func(d *Document) { swift(d).AuthURL = "" }, "backends[primary].swift.authURL: must not be empty"},
		{"swift with a path for a container", func(d *Document) { swift(d).Container = "a/b" }, "backends[primary].swift.container: must not be empty nor contain a slash"},
		{"swift without password", func(d *Document) { swift(d).Auth.Password = "" }, "backends[primary].swift.auth: must have a user's name and password"},
		{"azure without endpoint", func(d *Document) { azure(d).Endpoint = "" }, "backends[primary].azure.endpoint: must not be empty"},
		{"azure without container", func(d *Document) { azure(d).Container = "" }, "backends[primary].azure.container: must not be empty nor contain a slash"},
		{"azure with an unknown auth", func(d *Document) { azure(d).Auth.Type = "Magic" }, `backends[primary].azure.auth.type: "Magic" must be Secret, Ambient or Anonymous`},
		{"azure without key", func(d *Document) { azure(d).Auth.Key = "" }, "backends[primary].azure.auth: must have AZURE_STORAGE_ACCOUNT and AZURE_STORAGE_KEY, or AZURE_STORAGE_SAS_TOKEN"},
		{"azure with a key that is none", func(d *Document) { azure(d).Auth.Key = "no key!" }, "backends[primary].azure.auth: must have a key in base64 under AZURE_STORAGE_KEY, and no line break under AZURE_STORAGE_ACCOUNT"},
		{"azure with a key and a signature", func(d *Document) { azure(d).Auth.SASToken = "sig=x" }, "backends[primary].azure.auth: must have AZURE_STORAGE_ACCOUNT and AZURE_STORAGE_KEY, or AZURE_STORAGE_SAS_TOKEN, and not both"},
		{"azure with a signature that is none", func(d *Document) { azure(d).Auth = AzureAuth{Type: AuthSecret, SASToken: "token"} }, "backends[primary].azure.auth: must have a signature such as sv=...&sig=... under AZURE_STORAGE_SAS_TOKEN, without a line break"},
		{"a reference to no backend", func(d *Document) { root(d).Members[0].Backend = "gone" }, `muxes[assets].members[primary]: no backend is named "gone"`},
		{"a reference to no mux", func(d *Document) { root(d).Members[1].Mux = "gone" }, `muxes: no mux is named "gone"`},
		{"no root", func(d *Document) { d.Root = "gone" }, `muxes: no mux is named "gone"`},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			d := validDocument()
			tt.breaks(d)
			err := Validate(d)
			var invalid *InvalidError
			if !errors.As(err, &invalid) {
				t.Fatalf("Validate gave %v, want an InvalidError", err)
			}
			if err.Error() != tt.want {
				t.Errorf("Validate gave\n  %s\nwant\n  %s", err, tt.want)
			}
		})
	}
}

func TestValidateAcceptsWhatIsUnusualButRight(t *testing.T) {
	deadline := time.Now()
	http := func(d *Document) *HTTP { return asHTTP(&d.Backends[1]) }
	bunny := func(d *Document) *Bunny { return asBunny(&d.Backends[1]) }
	swift := func(d *Document) *Swift { return asSwift(&d.Backends[1]) }
	azure := func(d *Document) *Azure { return asAzure(&d.Backends[1]) }
	tests := []struct {
		name  string
		makes func(*Document)
	}{
		{"the document as it is", func(*Document) {}},
		{"no TLS", func(d *Document) { d.Frontend.TLS = nil }},
		{"no auth", func(d *Document) { d.Frontend.Auth, d.Frontend.KeyPairs = FrontendNone, nil }},
		{"a previous key", func(d *Document) { d.Keys.Previous = d.Keys.Current }},
		{"a granted drain", func(d *Document) {
			d.Muxes[0].Members[0].Drain = &Drain{Phase: DrainGranted, Deadline: &deadline}
		}},
		{"a read-only drain", func(d *Document) { d.Muxes[0].Members[0].Drain = &Drain{Phase: DrainReadOnly} }},
		{"no member after a forced removal", func(d *Document) {
			d.Muxes[0].Members, d.Released = nil, []Released{{Name: "primary", UID: "backend-1"}}
		}},
		{"an HTTP folder for everybody", func(d *Document) { http(d).Auth, http(d).Flavor = HTTPAuth{}, FlavorPlain }},
		{"HTTP with headers only", func(d *Document) {
			http(d).Auth = HTTPAuth{Headers: map[string]Secret{"Authorization": "Digest x", "X-Key": "k"}}
		}},
		{"a zone", func(d *Document) { bunny(d) }},
		{"a Swift container", func(d *Document) { swift(d) }},
		{"an Azure container", func(d *Document) { azure(d) }},
		{"an Azure container by a signature", func(d *Document) { azure(d).Auth = AzureAuth{Type: AuthSecret, SASToken: "?sv=1&sig=x%3D"} }},
		{"an Azure container for everybody", func(d *Document) { azure(d).Auth = AzureAuth{Type: AuthAnonymous} }},
		{"an ambient identity", func(d *Document) { d.Backends[1].S3.Auth = S3Auth{Type: AuthAmbient} }},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			d := validDocument()
			tt.makes(d)
			if err := Validate(d); err != nil {
				t.Errorf("Validate: %v", err)
			}
		})
	}
}
