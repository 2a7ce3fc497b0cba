package s3

import (
	"encoding/xml"
	"reflect"
	"strings"
	"testing"
	"time"
)

// reflected is page as encoding/xml reads it by itself, which is the oracle.
type reflected struct {
	EncodingType          string
	IsTruncated           bool
	NextContinuationToken string
	Contents              []struct {
		Key          string
		LastModified time.Time
		ETag         string
		Size         int64
	}
	CommonPrefixes []struct{ Prefix string }
}

func TestAPageIsReadAsByReflection(t *testing.T) {
	for name, inner := range map[string]string{
		"empty":          "",
		"all":            `<Name>b</Name><EncodingType>url</EncodingType><IsTruncated>true</IsTruncated><NextContinuationToken>a&amp;b</NextContinuationToken>`,
		"an object":      `<Contents><Key>a%2Fb</Key><LastModified>2026-12-01T01:02:03.004Z</LastModified><ETag>&#34;e&#34;</ETag><Size>5</Size></Contents>`,
		"little of it":   `<Contents><Key/></Contents><Contents><Size> 7 </Size></Contents>`,
		"more of it":     `<Contents><Key>k</Key><Owner><ID>1</ID><Key>none</Key></Owner><Size>1</Size><ChecksumAlgorithm>CRC32</ChecksumAlgorithm></Contents>`,
		"in pieces":      `<Contents><Key>a<!-- c -->b<![CDATA[<c>]]>&lt;</Key></Contents>`,
		"prefixes":       `<CommonPrefixes><Prefix>a/</Prefix></CommonPrefixes><Prefix>p</Prefix><CommonPrefixes><Prefix>b/</Prefix></CommonPrefixes>`,
		"white space":    "\n <IsTruncated> false </IsTruncated>\n<Contents>\n<Key>k</Key>\n</Contents>\n",
		"elsewhere":      `<Other><Contents><Key>none</Key></Contents><IsTruncated>true</IsTruncated></Other><Key>none</Key>`,
		"a namespace":    `<x:Contents xmlns:x="y"><x:Key a="b">k</x:Key></x:Contents>`,
		"no number":      `<Contents><Size>many</Size></Contents>`,
		"no time":        `<Contents><LastModified>yesterday</LastModified></Contents>`,
		"no truth":       `<IsTruncated>perhaps</IsTruncated>`,
		"not closed":     `<Contents><Key>k</Key>`,
		"wrongly closed": `<Contents><Key>k</Contents></Key>`,
	} {
		text := `<?xml version="1.0" encoding="UTF-8"?>` + "\n" + `<ListBucketResult xmlns="http://s3.amazonaws.com/doc/2006-03-01/">` + inner + `</ListBucketResult>`
		var got page
		var oracle reflected
		err, oracleErr := xml.Unmarshal([]byte(text), &got), xml.Unmarshal([]byte(text), &oracle)
		if (err == nil) != (oracleErr == nil) {
			t.Errorf("%s: got error %v, want %v", name, err, oracleErr)
		}
		if err != nil || oracleErr != nil {
			continue
		}
		want := page{EncodingType: oracle.EncodingType, IsTruncated: oracle.IsTruncated, NextContinuationToken: oracle.NextContinuationToken}
		for _, o := range oracle.Contents {
			want.Contents = append(want.Contents, listed(o))
		}
		for _, p := range oracle.CommonPrefixes {
			want.CommonPrefixes = append(want.CommonPrefixes, p.Prefix)
		}
		if !reflect.DeepEqual(got, want) {
			t.Errorf("%s:\ngot  %+v\nwant %+v", name, got, want)
		}
	}
	if err := xml.Unmarshal([]byte(strings.Repeat("<a>", 3)), &page{}); err == nil {
		t.Error("a document that ends early was read")
	}
}
