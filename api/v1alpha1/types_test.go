package v1alpha1_test

import (
	"testing"

	"github.com/suaveplan/storagemux/api/v1alpha1"
)

func TestMemberTargetFillsInWhatItsRefLeavesOut(t *testing.T) {
	for _, tc := range []struct {
		name     string
		ref      *v1alpha1.MemberReference
		wantKind v1alpha1.MemberKind
		wantName string
	}{
		{"no ref", nil, v1alpha1.MemberKindStorageBackend, "eu"},
		{"empty ref", &v1alpha1.MemberReference{}, v1alpha1.MemberKindStorageBackend, "eu"},
		{"name only", &v1alpha1.MemberReference{Name: "primary"}, v1alpha1.MemberKindStorageBackend, "primary"},
		{"kind only", &v1alpha1.MemberReference{Kind: v1alpha1.MemberKindStorageMux}, v1alpha1.MemberKindStorageMux, "eu"},
		{"both", &v1alpha1.MemberReference{Kind: v1alpha1.MemberKindStorageMux, Name: "pair"}, v1alpha1.MemberKindStorageMux, "pair"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			member := v1alpha1.Member{Name: "eu", Ref: tc.ref}
			if kind, name := member.Target(); kind != tc.wantKind || name != tc.wantName {
				t.Errorf("the target is %s %s, want %s %s", kind, name, tc.wantKind, tc.wantName)
			}
		})
	}
}

func TestBackendTypeIsTheNameOfTheOneFieldThatIsSet(t *testing.T) {
	for want, spec := range map[v1alpha1.BackendType]v1alpha1.StorageBackendSpec{
		v1alpha1.BackendTypeS3:       {S3: &v1alpha1.S3Backend{}},
		v1alpha1.BackendTypeHTTP:     {HTTP: &v1alpha1.HTTPBackend{}},
		v1alpha1.BackendTypeFile:     {File: &v1alpha1.FileBackend{}},
		v1alpha1.BackendTypeMemory:   {Memory: &v1alpha1.MemoryBackend{}},
		v1alpha1.BackendTypeBunny:    {Bunny: &v1alpha1.BunnyBackend{}},
		v1alpha1.BackendTypeSwift:    {Swift: &v1alpha1.SwiftBackend{}},
		v1alpha1.BackendTypeAzure:    {Azure: &v1alpha1.AzureBackend{}},
		v1alpha1.BackendTypeFallback: {Fallback: &v1alpha1.FallbackBackend{}},
		"":                           {},
	} {
		if got := spec.Type(); got != want {
			t.Errorf("the type is %q, want %q", got, want)
		}
	}
	two := v1alpha1.StorageBackendSpec{S3: &v1alpha1.S3Backend{}, Memory: &v1alpha1.MemoryBackend{}}
	if got := two.Type(); got != "" {
		t.Errorf("the type of two is %q", got)
	}
}

func TestFrontendBucketIsTheMuxNameUnlessItIsSet(t *testing.T) {
	mux := v1alpha1.StorageMux{}
	mux.Name = "assets"
	if got := mux.FrontendBucket(); got != "assets" {
		t.Errorf("the bucket is %q", got)
	}
	mux.Spec.Frontend.Bucket = "published"
	if got := mux.FrontendBucket(); got != "published" {
		t.Errorf("the bucket is %q", got)
	}
}
