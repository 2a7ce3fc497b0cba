package storage

import (
	"testing"
	"time"
)

func TestConditionsOnReads(t *testing.T) {
	modified := time.Date(2026, 1, 2, 3, 4, 5, 600, time.UTC)
	second := modified.Truncate(time.Second)
	strong, weak := Info{ETag: "e1", ModTime: modified}, Info{ETag: "W/e1", ModTime: modified}
	tests := map[string]struct {
		c    Conditions
		info Info
		want Code
	}{
		"none":                                  {Conditions{}, strong, ""},
		"match":                                 {Conditions{IfMatch: []string{"e0", "e1"}}, strong, ""},
		"any":                                   {Conditions{IfMatch: []string{"*"}}, weak, ""},
		"other":                                 {Conditions{IfMatch: []string{"e2"}}, strong, CodePreconditionFailed},
		"weak tags never match strongly":        {Conditions{IfMatch: []string{"W/e1"}}, weak, CodePreconditionFailed},
		"a missing tag matches nothing":         {Conditions{IfMatch: []string{""}}, Info{}, CodePreconditionFailed},
		"none match":                            {Conditions{IfNoneMatch: []string{"e2"}}, strong, ""},
		"same":                                  {Conditions{IfNoneMatch: []string{"e1"}}, strong, CodeNotModified},
		"same, weakly":                          {Conditions{IfNoneMatch: []string{"W/e1"}}, strong, CodeNotModified},
		"modified since":                        {Conditions{IfModifiedSince: second.Add(-time.Second)}, strong, ""},
		"not modified since, to the second":     {Conditions{IfModifiedSince: second}, strong, CodeNotModified},
		"unmodified since, to the second":       {Conditions{IfUnmodifiedSince: second}, strong, ""},
		"modified after":                        {Conditions{IfUnmodifiedSince: second.Add(-time.Second)}, strong, CodePreconditionFailed},
		"If-Match beats If-Unmodified-Since":    {Conditions{IfMatch: []string{"e1"}, IfUnmodifiedSince: second.Add(-time.Hour)}, strong, ""},
		"If-None-Match beats If-Modified-Since": {Conditions{IfNoneMatch: []string{"e2"}, IfModifiedSince: second}, strong, ""},
		"If-Match comes before If-None-Match":   {Conditions{IfMatch: []string{"e2"}, IfNoneMatch: []string{"e1"}}, strong, CodePreconditionFailed},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			if got := CodeOf(tt.c.CheckRead(tt.info)); got != tt.want {
				t.Errorf("got %q, want %q", got, tt.want)
			}
		})
	}
}

func TestConditionsOnWrites(t *testing.T) {
	info := Info{ETag: "e1"}
	tests := map[string]struct {
		c      Conditions
		exists bool
		want   Code
	}{
		"none":                 {Conditions{}, false, ""},
		"create":               {Conditions{IfNoneMatch: []string{"*"}}, false, ""},
		"create over":          {Conditions{IfNoneMatch: []string{"*"}}, true, CodePreconditionFailed},
		"update":               {Conditions{IfMatch: []string{"e1"}}, true, ""},
		"update of another":    {Conditions{IfMatch: []string{"e2"}}, true, CodePreconditionFailed},
		"update of nothing":    {Conditions{IfMatch: []string{"e1"}}, false, CodeKeyNotFound},
		"unless it is that":    {Conditions{IfNoneMatch: []string{"e1"}}, true, CodePreconditionFailed},
		"unless it is another": {Conditions{IfNoneMatch: []string{"e2"}}, true, ""},
		"dates mean nothing":   {Conditions{IfUnmodifiedSince: time.Unix(1, 0)}, true, ""},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			if got := CodeOf(tt.c.CheckWrite(tt.exists, info)); got != tt.want {
				t.Errorf("got %q, want %q", got, tt.want)
			}
		})
	}
}
